package pipelines_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
)

// byID are a form's results in ascending order of id.
func byID(form *formservice.Form) []formservice.Result {
	all := pipelinestest.Truth(form, nil)
	slices.SortFunc(all, func(a, b formservice.Result) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// TestHead: the first results by id are written, however long pages are, and nothing is
// said to be verified.
func TestHead(t *testing.T) {
	for name, faults := range map[string]formservice.Faults{
		"": "", "short pages": "page-cap=30",
	} {
		for _, limit := range []int64{1, 100, 250, 5000} {
			t.Run(fmt.Sprint(name, " ", limit), func(t *testing.T) {
				form := generated(700)
				w := newWorld(t, form)
				w.service.SetFaults(faults)
				def := w.definition(definition.Output{Path: "form1.ndjson", Format: "ndjson"})
				report, err := pipelines.Head(t.Context(), def, options(), limit)
				if err != nil {
					t.Fatal(err)
				}
				want := byID(form)
				want = want[:min(int(limit), len(want))]
				w.checkTidy()
				w.checkFile("form1.ndjson", want)
				if v := report.Forms[0].Verified; v.Match || v.Reason != pipelines.LimitGiven || v.Extracted != int64(len(want)) {
					t.Errorf("verified %+v", v)
				}
				if n := report.Requests.Results; name == "" && limit <= 500 && n > (limit+99)/100 {
					t.Errorf("%d requests for %d results", n, limit)
				}
			})
		}
	}
}

// TestHeadOfOddForms: a column that comes behind the pages from which columns are inferred
// is written, and too many rejects end it.
func TestHeadOfOddForms(t *testing.T) {
	t.Run("a column comes late", func(t *testing.T) {
		form := generated(700)
		last := byID(form)[699]
		last.Items = append(slices.Clone(last.Items), formservice.Answer{ID: "99", Values: []string{"late"}})
		if err := form.Update(last); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, form)
		def := w.definition(definition.Output{Path: "form1.ndjson", Format: "ndjson"})
		if _, err := pipelines.Head(t.Context(), def, options(), 1000); err != nil {
			t.Fatal(err)
		}
		w.checkFile("form1.ndjson", byID(form))
		if n := strings.Count(w.read("form1.ndjson"), `"item_99":"late"`); n != 1 {
			t.Errorf("the late column has its value %d times", n)
		}
		w.checkTidy()
	})
	t.Run("too many rejects", func(t *testing.T) {
		w := newWorld(t, generated(300))
		def := w.definition(definition.Output{Path: "form1.csv", Format: "csv"})
		def.Schema = declared(t, schemas.UnknownIgnore, schemas.OnErrorReject, "int64")
		_, err := pipelines.Head(t.Context(), def, options(), 100)
		if e := new(reading.RejectsError); !errors.As(err, &e) {
			t.Errorf("%v", err)
		}
		w.checkTidy()
	})
}

// TestLook shows the latest results first, and says where a service cannot give them.
func TestLook(t *testing.T) {
	form := generated(350)
	w := newWorld(t, form)
	def := w.definition()
	ids := func(n int64) (ids []string, err error) {
		var out bytes.Buffer
		err = pipelines.Look(t.Context(), def, options(), pipelines.LookQuery{Form: "form1", Limit: n, Latest: true}, csvout.TSV(), &out)
		for line := range strings.Lines(out.String()) {
			if id, _, ok := strings.Cut(line, "\t"); ok && strings.HasPrefix(id, "10") {
				ids = append(ids, id)
			}
		}
		return ids, err
	}
	all := byID(form)
	for _, n := range []int64{1, 3, 100, 101, 1000} {
		got, err := ids(n)
		if err != nil || len(got) < min(int(n), len(all)) || got[0] != fmt.Sprint(all[len(all)-1].ID) {
			t.Errorf("%d: %d results from %q, %v", n, len(got), got[:1], err)
		}
	}
	form = formservice.NewForm("form1", nil, nil)
	w = newWorld(t, form)
	def = w.definition()
	if got, err := ids(5); err != nil || len(got) != 0 {
		t.Errorf("an empty form gives %q, %v", got, err)
	}
}
