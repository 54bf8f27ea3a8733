package pipelines_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
)

// TestHalfOfAFullRun: a run --full ends after one of its datasets is committed, with other
// columns than the other one still has. The next run, whatever it is asked for, makes
// datasets of it that agree, and later ones go on from them.
func TestHalfOfAFullRun(t *testing.T) {
	needs.Slow(t)
	for name, change := range map[string]struct {
		do     func(r *resumed)
		column string // what all datasets hold in the end
		schema *schemas.Schema
	}{
		"a text became a list":         {func(r *resumed) { r.answers(5, "red", "blue") }, "item_1 list<string>", nil},
		"a list became a text":         {func(r *resumed) { r.answers(1, "red") }, "item_1 string", nil},
		"a question has another label": {relabelled, "answer string", nil},
		"a question that was added has": {
			relabelled, "reply_1 string",
			&schemas.Schema{Name: "s", Unknown: schemas.UnknownAdd, MaxRejects: 1, Columns: []schemas.Column{{Name: "result_id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}}}},
		},
	} {
		for i, flags := range []func(o *pipelines.Options, def *definition.Definition){
			func(*pipelines.Options, *definition.Definition) {},
			func(_ *pipelines.Options, def *definition.Definition) {
				def.Extract.Incremental, def.Extract.Lookback = true, time.Hour
			},
			func(o *pipelines.Options, def *definition.Definition) {
				o.Range = between(def.Extract.From.AddDate(0, 0, 3), def.Extract.To)
			},
		} {
			half := []string{"days", "months"}[i%2]
			t.Run(name+", of "+half, func(t *testing.T) {
				r := newResumed(t)
				if strings.HasPrefix(name, "a list") {
					r.answers(1, "green", "blue")
				}
				define := func() *definition.Definition {
					def := r.daily(days(), months())
					if def.Schema = change.schema; !strings.HasPrefix(change.column, "item_1") {
						def.Names = schemas.ByLabel
					}
					return def
				}
				r.run(define())
				change.do(r)
				o := watching(func(root, _, name string) error {
					if filepath.Base(root) != half && strings.HasPrefix(name, load.ControlFolder+"/"+load.IntentName) {
						return errStop
					}
					return nil
				})
				o.Full, o.Now = true, r.o.Now
				if _, err := pipelines.Run(t.Context(), define(), o); !errors.Is(err, errStop) {
					t.Fatal(err)
				}
				o, def := r.o, define()
				flags(&o, def)
				r.runBy(def, o)
				for range 2 {
					for _, set := range []string{"days", "months"} {
						m := r.checkDataset(set, pipelinestest.Truth(r.form, inJanuary))
						has := ""
						for _, c := range m.Schema {
							if c.From == "item:1" {
								has = c.Name + " " + c.Type
							}
						}
						if has != change.column {
							t.Errorf("%s has %s", set, has)
						}
					}
					r.run(define())
				}
			})
		}
	}
}

// relabelled gives the question another label.
func relabelled(r *resumed) {
	r.form = formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Reply"}}, pipelinestest.Truth(r.form, nil))
	r.service.SetForms(r.form)
}

// answers gives a result these values.
func (r *resumed) answers(id int64, values ...string) {
	r.t.Helper()
	result, _ := r.form.Get(id)
	result.Items = []formservice.Answer{{ID: "1", Type: "text", Index: 1, Values: values}}
	if err := r.form.Update(result); err != nil {
		r.t.Fatal(err)
	}
}
