package pipelines_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
)

// formOf is a form with so many results, ten a day from the first of January
// on, whose answers name the form.
func formOf(directory string, results int) *formservice.Form {
	rs := make([]formservice.Result, results)
	for i := range rs {
		rs[i] = pipelinestest.Result(int64(i+1), fmt.Sprintf("2026-01-%02d 09:%02d:00", 1+i/10%28, i%10), directory)
	}
	return formservice.NewForm(directory, []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, rs)
}

// several takes every form to a file and a dataset of its own.
func (w *world) several() *definition.Definition {
	def := w.definition(
		definition.Output{Path: "files/{form}.ndjson", Format: "ndjson"},
		definition.Output{Path: "lake/{form}/", Format: "ndjson", Partition: definition.PartitionMonth})
	def.Forms = []string{"*"}
	return def
}

// checkForm compares both outputs of a form with the truth.
func (w *world) checkForm(f *formservice.Form) {
	w.t.Helper()
	w.checkFile("files/"+f.Directory+".ndjson", pipelinestest.Truth(f, nil))
	w.checkDataset("lake/"+f.Directory, pipelinestest.Truth(f, nil))
}

func formsIn(r *pipelines.Report) string {
	names := make([]string, 0, len(r.Forms))
	for _, f := range r.Forms {
		names = append(names, f.Form)
	}
	return strings.Join(names, " ")
}

// meeting makes so many requests wait for each other: they must be under way
// at once.
type meeting struct {
	t     testing.TB
	of    int
	mu    sync.Mutex
	there int
	all   chan struct{}
}

func meet(t testing.TB, of int) *meeting {
	return &meeting{t: t, of: of, all: make(chan struct{})}
}

// longest is how long a request waits at most for what must come.
const longest = 10 * time.Second

// come waits until all are there. Those that come later pass.
func (m *meeting) come() {
	m.mu.Lock()
	m.there++
	if m.there == m.of {
		close(m.all)
	}
	m.mu.Unlock()
	select {
	case <-m.all:
	case <-time.After(longest):
		m.t.Errorf("%d requests were not under way at once", m.of)
	}
}

// TestTheWholeConcurrencyIsUsed by one large form and by many small ones, and
// no more than that.
func TestTheWholeConcurrencyIsUsed(t *testing.T) {
	small := make([]*formservice.Form, 12)
	for i := range small {
		small[i] = formOf(fmt.Sprintf("small%02d", i), 5)
	}
	for _, c := range []struct {
		name  string
		forms []*formservice.Form
		step  extract.Period
	}{
		{"one large form", []*formservice.Form{formOf("large", 300)}, extract.Period{Days: 7}},
		{"many small forms, of one window each", small, extract.Period{}},
		{"both", append([]*formservice.Form{formOf("large", 300)}, small...), extract.Period{Days: 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.forms...)
			m := meet(t, 4)
			w.service.Before = func(r formservice.Request) {
				if r.Transaction == formservice.TransactionResults && !asksWhatChanged(r) {
					m.come()
				}
			}
			def := w.several()
			def.Extract.Window = c.step
			w.run(def)
			if peak := w.service.Peak(); peak != 4 {
				t.Errorf("%d requests were under way at once, want 4", peak)
			}
			for _, f := range c.forms {
				w.checkForm(f)
			}
		})
	}
}

// TestWindowsInFlightOfAllForms are as many as requests may be under way,
// whatever the number of forms: memory is bounded by them.
func TestWindowsInFlightOfAllForms(t *testing.T) {
	const most = 3
	forms := make([]*formservice.Form, 0, 4)
	for _, name := range []string{"a", "b", "c", "d"} {
		f := formOf(name, 0)
		for i := range 600 { // four days, two pages each
			if _, err := f.Insert(pipelinestest.Result(int64(i+1), fmt.Sprintf("2026-01-%02d 09:00:00", 1+i/150), name)); err != nil {
				t.Fatal(err)
			}
		}
		forms = append(forms, f)
	}
	w := newWorld(t, forms...)
	w.service.SetFaults("latency=2ms")
	var mu sync.Mutex
	begun, peak := map[string]bool{}, 0
	w.service.Before = func(r formservice.Request) {
		if r.Transaction != formservice.TransactionResults || asksWhatChanged(r) {
			return
		}
		_, day, _ := strings.Cut(r.Query, "fs_min_date=")
		window := r.Form + " " + day[:len("2026-01-01")]
		mu.Lock()
		defer mu.Unlock()
		if begun[window] { // the second page is the last one
			delete(begun, window)
			return
		}
		begun[window] = true
		peak = max(peak, len(begun))
	}
	def := w.several()
	def.Extract.From, def.Extract.To = extracttest.Wall("2026-01-01"), extracttest.Wall("2026-01-05")
	def.Extract.Window = extract.Period{Days: 1}
	def.Source.Requests.Concurrency = most
	def.Schema = declared(t, schemas.UnknownAdd, schemas.OnErrorReject, "string") // no sample is read
	def.Schema.Columns = def.Schema.Columns[:1]
	def.Schema.Columns[0].Name = "result_id"
	w.run(def)
	if peak > most || peak < 2 || w.service.Peak() > most {
		t.Errorf("%d windows and %d requests at once, want at most %d", peak, w.service.Peak(), most)
	}
	for _, f := range forms {
		w.checkForm(f)
	}
}

// TestWhatConcernsEveryFormIsAskedOnce: with a refused key or a wrong account
// no further form is begun, and each is in the report.
func TestWhatConcernsEveryFormIsAskedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*definition.Definition)
		code   int
	}{
		"refused key":   {func(d *definition.Definition) { d.Source.Key = transport.NewSecret("another") }, transport.CodeInvalidKey},
		"wrong account": {func(d *definition.Definition) { d.Source.Account = "another" }, transport.CodeInvalidUser},
	} {
		for _, concurrency := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s, %d at once", name, concurrency), func(t *testing.T) {
				w := newWorld(t)
				def := w.several()
				def.Forms = nil
				for i := range 50 {
					def.Forms = append(def.Forms, fmt.Sprintf("form%02d", i))
				}
				def.Source.Requests.Concurrency = concurrency
				c.change(def)
				report, err := pipelines.Run(t.Context(), def, options())
				failed, ok := errors.AsType[*pipelines.FormsError](err)
				if !ok || len(failed.Errors) != 50 || len(report.Forms) != 50 {
					t.Fatalf("%d entries, error %v", len(report.Forms), err)
				}
				notRun := 0
				for i, f := range report.Forms {
					if s, ok := errors.AsType[*transport.ServiceError](failed.Errors[i]); !ok || s.Code != c.code {
						t.Errorf("%s: %v", f.Form, failed.Errors[i])
					}
					if _, ok := errors.AsType[*pipelines.NotRunError](f.Err); ok {
						notRun++
					}
				}
				if n := len(w.service.Log()); n > concurrency || n+notRun != 50 {
					t.Errorf("%d requests, %d forms not run", n, notRun)
				}
				if text := err.Error(); !strings.Contains(text, fmt.Sprintf("; %d other forms not started", notRun)) || strings.Count(text, "\n") > concurrency {
					t.Errorf("error %s", text)
				}
				w.checkTidy()
			})
		}
	}
}

// TestStopSeveralForms stops those under way and begins no other; what was
// committed stays.
func TestStopSeveralForms(t *testing.T) {
	forms := make([]*formservice.Form, 12)
	for i := range forms {
		forms[i] = formOf(fmt.Sprintf("form%02d", i), 5)
	}
	w := newWorld(t, forms...)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	w.service.Before = func(r formservice.Request) {
		switch {
		case r.Form == "form06":
			cancel(errStop)
		case r.Form > "form06":
			<-ctx.Done() // it was begun before form06 asked for anything
		}
	}
	def := w.several()
	def.Source.Requests.Concurrency = 3
	report, err := pipelines.Run(ctx, def, options())
	if !errors.Is(err, errStop) {
		t.Fatalf("error %v", err)
	}
	if len(report.Forms) != len(forms) {
		t.Fatalf("report of %s", formsIn(report))
	}
	written, begun := 0, 0
	for i, f := range report.Forms {
		if n, not := errors.AsType[*pipelines.NotRunError](f.Err); !not {
			begun++
		} else if !n.Stopped {
			t.Errorf("%s: %v", f.Form, f.Err)
		}
		switch {
		case f.Err == nil:
			w.checkForm(forms[i])
			written++
		case !errors.Is(f.Err, errStop):
			t.Errorf("%s: %v", f.Form, f.Err)
		}
	}
	if written < 4 || written > 6 || begun < 7 || begun > 9 {
		t.Errorf("%d forms were begun and %d written", begun, written)
	}
}
