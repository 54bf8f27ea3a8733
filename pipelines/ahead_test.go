package pipelines_test

import (
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
)

// TestStagedAhead: parts are staged while others are still read. A part is staged anew
// if its results or the columns change afterwards, and no other part is.
func TestStagedAhead(t *testing.T) {
	const late = 2 * largeResults // the id of the last result
	for name, c := range map[string]struct {
		schema *schemas.Schema
		change func(*formservice.Form) error // after the first part was staged
		again  func(anew, parts int) bool    // whether so many parts may be staged twice
	}{
		"nothing changes": {again: func(anew, _ int) bool { return anew == 0 }},
		"a result of the first part goes": {
			change: func(f *formservice.Form) error {
				f.Delete(4)
				return nil
			},
			again: func(anew, _ int) bool { return anew == 1 },
		},
		"a result comes to the first part": {
			change: func(f *formservice.Form) error {
				_, err := f.Insert(largeResult(7))
				return err
			},
			again: func(anew, _ int) bool { return anew == 1 },
		},
		"a column comes": {
			schema: &schemas.Schema{Unknown: schemas.UnknownAdd, Columns: []schemas.Column{
				{Name: "result_id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
			}},
			change: func(f *formservice.Form) error {
				r, _ := f.Get(late)
				r.Items = append(slices.Clone(r.Items), formservice.Answer{ID: "9", Values: []string{"new"}})
				return f.Update(r)
			},
			again: func(anew, parts int) bool { return anew > 0 && anew <= parts },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, form := largeWorld(t)
			var pages, prepared atomic.Int64
			first, once := make(chan struct{}), sync.Once{}
			w.service.Before = func(q formservice.Request) {
				// Of at least 120. The last result is not read before either, by whatever request.
				if !isPage(q) || pages.Add(1) < 100 && !reaches(q, late) {
					return
				}
				select {
				case <-first:
				case <-time.After(20 * time.Second):
					t.Error("no part is staged while others are read")
				}
			}
			o := options()
			o.At = func(point string) {
				if point != "prepared" {
					return
				}
				prepared.Add(1)
				once.Do(func() {
					if c.change != nil {
						if err := c.change(form); err != nil {
							t.Error(err)
						}
					}
					close(first)
				})
			}
			def := w.definition(definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay})
			def.Schema = c.schema
			if _, err := pipelines.Run(t.Context(), def, o); err != nil {
				t.Fatal(err)
			}
			w.checkTidy()
			m := w.checkDataset("days", pipelinestest.Truth(form, nil))
			if anew := int(prepared.Load()) - len(m.Parts); !c.again(anew, len(m.Parts)) {
				t.Errorf("%d of %d parts were staged twice", anew, len(m.Parts))
			}
		})
	}
}

// reaches tells whether the answer to a request for a page may hold the result.
func reaches(q formservice.Request, id int64) bool {
	given, _ := url.ParseQuery(q.Query)
	lowest, _ := strconv.ParseInt(given.Get("fs_min_id"), 10, 64)
	highest, err := strconv.ParseInt(given.Get("fs_max_id"), 10, 64)
	return (err != nil || id <= highest) && id < lowest+2*100 // every second id is one of a result
}
