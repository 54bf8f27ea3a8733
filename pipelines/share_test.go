package pipelines_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// under counts how many requests for pages are under way at once.
type under struct {
	mu        sync.Mutex
	now, most int
	asked     map[string]int // requests by their query
}

func (u *under) add(q formservice.Request, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !isPage(q) {
		return
	}
	u.now += n
	u.most = max(u.most, u.now)
	if n > 0 {
		if u.asked == nil {
			u.asked = map[string]int{}
		}
		u.asked[q.Query]++
	}
}

func isPage(q formservice.Request) bool {
	return q.Transaction == formservice.TransactionResults && !strings.Contains(q.Query, "fs_sort=")
}

// meet holds a request for a page until two of them were under way at once, for a
// fifth of a second at most. A slow disk would else keep short requests apart.
func (u *under) meet(q formservice.Request) {
	for range 100 {
		u.mu.Lock()
		met := u.most > 1
		u.mu.Unlock()
		if met || !isPage(q) {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// inOneWindow reads a form in one window into a file and two datasets, whose columns
// the pages add to.
func (w *world) inOneWindow(concurrency int) *definition.Definition {
	def := w.definition(
		definition.Output{Path: "form1.csv", Format: "csv"}, definition.Output{Path: "plain/", Format: "ndjson"},
		definition.Output{Path: "columns/", Format: "parquet"},
	)
	def.Source.Requests.Concurrency = concurrency
	def.Schema = &schemas.Schema{MaxRejects: 1 << 20, Columns: []schemas.Column{
		{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
	}}
	return def
}

// TestSharedWindow: the goroutines that share a window give the bytes of one that
// reads it alone, in whatever order their pages come. They ask for few pages twice.
func TestSharedWindow(t *testing.T) {
	read := func(t *testing.T, concurrency int, seed uint64) (files map[string]string, u *under) {
		t.Helper()
		w := newWorld(t, generated(3500))
		u = &under{}
		random, mu := rand.New(rand.NewPCG(seed, 1)), sync.Mutex{}
		w.service.Before = func(q formservice.Request) {
			u.add(q, 1)
			defer u.add(q, -1)
			mu.Lock()
			pause := time.Duration(random.IntN(9)) * time.Millisecond
			mu.Unlock()
			time.Sleep(pause)
			if concurrency > 1 {
				u.meet(q)
			}
		}
		def := w.inOneWindow(concurrency)
		_, def.Extract.To = extractRange()
		w.run(def)
		files = map[string]string{}
		for name, data := range tree(t, w.dir) {
			if strings.HasSuffix(name, "form1.csv") || strings.Contains(name, "part-") {
				files[name] = data
			}
		}
		return files, u
	}
	want, alone := read(t, 1, 0)
	for seed := range uint64(needs.Count(12, needs.Rounds(4, 1))) { //nolint:gosec // it is not negative
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			got, u := read(t, 2+int(seed%7), seed)
			if !maps.Equal(got, want) {
				t.Errorf("the bytes differ: %v, alone %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
			if u.most < 2 {
				t.Error("one goroutine read everything")
			}
			if n := len(u.asked) - len(alone.asked); n > 12 {
				t.Errorf("%d requests more than alone", n)
			}
		})
	}
}

// TestSharedAndKilled: what each goroutine had read of a window is of use to the next
// run, wherever the others were.
func TestSharedAndKilled(t *testing.T) {
	w := newWorld(t, generated(6000))
	def := w.inOneWindow(6)
	def.Extract.From, def.Extract.To = extractRange()
	u := &under{}
	w.service.Before = func(q formservice.Request) {
		u.add(q, 1)
		defer u.add(q, -1)
		time.Sleep(2 * time.Millisecond)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o := options()
	var pages atomic.Int64
	o.Progress = func(pipelines.Progress) {
		if pages.Add(1) == 40 {
			cancel(errStop)
		}
	}
	if _, err := pipelines.Run(ctx, def, o); !errors.Is(err, errStop) {
		t.Fatal(err)
	}
	w.run(def)
	total := 0
	for _, n := range u.asked {
		total += n
	}
	if total > 60+25 {
		t.Errorf("%d requests for 60 pages", total)
	}
}

// extractRange is a range that holds all results that are generated.
func extractRange() (from, to time.Time) {
	return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
}
