package upkeep_test

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas"
)

// inferred samples form1 of a service.
func inferred(t *testing.T, w *world, how upkeep.InferOptions) *upkeep.InferredSchema {
	t.Helper()
	def := w.definition()
	def.Names = schemas.ByLabel
	w.service.Reset()
	got, err := upkeep.InferSchema(t.Context(), def, options(), "form1", how)
	if err != nil {
		t.Fatal(err)
	}
	if asked := len(w.service.Log()); asked != got.Sampled.Requests {
		t.Errorf("%d requests, told were %d", asked, got.Sampled.Requests)
	}
	return got
}

func TestSampleSizes(t *testing.T) {
	for _, c := range []struct {
		results, sample, sampled, asked int
		whole                           bool
	}{
		{0, 1000, 0, 1, true},
		{100, 1000, 100, 2, true},
		{201, 1000, 201, 4, true},
		{450, 1000, 450, 6, true},
		{1000, 1000, 1000, 11, true},
		{1001, 1000, 1000, 11, false}, // nearly all
		{12_000, 1000, 1000, 11, false},
		{12_000, 10, 10, 3, false},
		{12_000, 1, 4, 3, false}, // two tell an order
	} {
		t.Run(fmt.Sprintf("%d of %d", c.sample, c.results), func(t *testing.T) {
			w := newWorld(t, formservice.Generate(formservice.GenerateOptions{Results: c.results, NoUndated: true}))
			got := inferred(t, w, upkeep.InferOptions{Sample: c.sample}).Sampled
			if got.Results > c.sampled || got.Results < c.sampled-c.sampled/50 || got.Requests != c.asked || got.Whole != c.whole {
				t.Errorf("%+v, want %d results by %d requests", got, c.sampled, c.asked)
			}
		})
	}
}

// TestSampleIsSpread: the pages begin at evenly spread ids, headings come with
// the first and the last.
func TestSampleIsSpread(t *testing.T) {
	w := newWorld(t, formservice.Generate(formservice.GenerateOptions{Results: 12_000}))
	inferred(t, w, upkeep.InferOptions{})
	var starts []int64
	for i, r := range w.service.Log() {
		q, err := url.ParseQuery(r.Query)
		if err != nil {
			t.Fatal(err)
		}
		if q.Has("fs_include_headings") != (i < 2) {
			t.Errorf("headings of request %d: %s", i, r.Query)
		}
		if q.Has("fs_min_id") {
			id, err := strconv.ParseInt(q.Get("fs_min_id"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			starts = append(starts, id)
		}
	}
	// 12,000 ids with gaps of three from 100,001 on, in eight parts.
	if len(starts) != 8 || !slices.IsSorted(starts) {
		t.Fatalf("pages begin at %d", starts)
	}
	for i, start := range starts {
		if want := int64(100_001 + (2*i+1)*36_000/16); start < want-600 || start > want+600 {
			t.Errorf("page %d begins at %d, not near %d", i, start, want)
		}
	}
}

// TestSampleOfRange: the range, the view and the search of the definition
// bound the sample.
func TestSampleOfRange(t *testing.T) {
	form := formservice.Generate(formservice.GenerateOptions{Results: 3000})
	w := newWorld(t, form)
	def := w.definition()
	def.Extract.From, def.Extract.To = extracttest.Wall("2025-03-01"), extracttest.Wall("2025-05-01")
	def.Extract.View = "101"
	def.Extract.Search = extract.Search{Where: []extract.Criterion{{Column: "result_status", Operator: extract.OpEquals, Term: "Complete"}}}
	got, err := upkeep.InferSchema(t.Context(), def, options(), "form1", upkeep.InferOptions{Sample: 5000})
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	form.Each(func(r formservice.Result) bool {
		status, _ := r.Meta("result_status")
		if finished := pipelinestest.Date(r); status == "Complete" && finished >= "2025-03-01" && finished < "2025-05-01" {
			want++
		}
		return true
	})
	if got.Sampled.Results != want || !got.Sampled.Whole || want < 200 {
		t.Errorf("%+v, want all %d", got.Sampled, want)
	}
	if len(got.Schema.Columns) > 12 {
		t.Errorf("%d columns of a view of few", len(got.Schema.Columns))
	}
}

// TestSampleOfBentServices: a service that ignores what it is asked for gives
// a smaller sample at worst, each result once, and never costs much more.
func TestSampleOfBentServices(t *testing.T) {
	for name, c := range map[string]struct {
		faults formservice.Faults
		least  int
	}{
		"no lower bound":          {"ignore-min-id", 200},
		"no upper bound":          {"ignore-max-id", 900},
		"no bounds":               {"ignore-min-id,ignore-max-id", 200},
		"no order":                {"ignore-direction", 100},
		"no order, no bounds":     {"ignore-direction,ignore-min-id,ignore-max-id", 100},
		"nothing":                 {"ignore-direction,ignore-min-id,ignore-max-id,ignore-page", 100},
		"no bounds and no pages":  {"ignore-min-id,ignore-page", 200},
		"short pages":             {"page-cap=40", 1000},
		"short pages, no order":   {"page-cap=40,ignore-direction", 40},
		"results come and go":     {"insert-every=1,delete-every=2", 1000},
		"a result for every page": {"page-cap=1", 900},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, formservice.Generate(formservice.GenerateOptions{Results: 12_000, NoUndated: true}))
			w.service.SetFaults(c.faults)
			got := inferred(t, w, upkeep.InferOptions{}).Sampled
			pages := 100
			if n, err := strconv.Atoi(c.faults.Value("page-cap")); err == nil {
				pages = n
			}
			if got.Results < c.least || got.Results > 1100 || got.Requests > 1000/pages+6 || got.Whole {
				t.Errorf("%+v, want %d results or more", got, c.least)
			}
		})
	}
}
