package pipelines_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// TestFormWithoutResults gives a file with its header and a dataset without
// parts, also where an earlier run had found results.
func TestFormWithoutResults(t *testing.T) {
	for _, bounded := range []bool{false, true} {
		for _, earlier := range []int{0, 25} {
			t.Run(fmt.Sprintf("bounded %v, %d results before", bounded, earlier), func(t *testing.T) {
				form := formOf("a", earlier)
				form.Metas = []string{"result_status", "date_finish"}
				w := newWorld(t, form)
				define := func() *definition.Definition {
					def := w.several()
					def.Outputs = append(def.Outputs, w.definition(definition.Output{Path: "files/{form}.csv", Format: "csv"}).Outputs...)
					if bounded {
						def.Extract.From, def.Extract.To = extracttest.Wall("2026-01-01"), extracttest.Wall("2026-02-01")
					}
					return def
				}
				if earlier > 0 {
					w.run(define())
					if m := w.checkDataset("lake/a", pipelinestest.Truth(form, nil)); len(m.Parts) == 0 {
						t.Fatal("no parts")
					}
					for id := range int64(earlier) {
						form.Delete(id + 1)
					}
				}
				report := w.run(define())
				if f := report.Forms[0]; f.Rows != 0 || f.Verified == nil || !f.Verified.Match {
					t.Errorf("%d rows, verified %+v", f.Rows, f.Verified)
				}
				w.checkForm(form)
				if m := w.checkDataset("lake/a", nil); len(m.Parts) != 0 {
					t.Errorf("parts %+v", m.Parts)
				}
				if header, err := os.ReadFile(w.path("files/a.csv")); err != nil || string(header) != "result_id,result_status,date_finish,item_1\n" {
					t.Errorf("%q, %v", header, err)
				}
			})
		}
	}
}

// TestABugInOneForm reaches whoever called Run, who says that it is one.
func TestABugInOneForm(t *testing.T) {
	w := newWorld(t, formOf("a", 20), formOf("b", 20))
	o := options()
	open := o.BuiltIn.Open
	o.BuiltIn.Open = func(ctx context.Context, root string, out definition.Output) (load.Destination, error) {
		if strings.HasSuffix(root, "lake/b") || strings.HasSuffix(root, "lake/b/") {
			panic("a bug")
		}
		return open(ctx, root, out)
	}
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "form b: a bug") {
			t.Errorf("panic %v", p)
		}
		w.checkTidy()
	}()
	_, err := pipelines.Run(t.Context(), w.several(), o)
	t.Errorf("no panic, error %v", err)
}
