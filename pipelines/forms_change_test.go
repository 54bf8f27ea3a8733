package pipelines_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// TestFormsThatAreNotThere: one that is named, or goes after it was listed,
// fails alone; a glob that matches none at all is an error before any work.
func TestFormsThatAreNotThere(t *testing.T) {
	for _, c := range []struct {
		name   string
		forms  []string
		vanish bool
		report string
		failed string
	}{
		{name: "named", forms: []string{"a", "typo"}, report: "a typo", failed: "typo"},
		{name: "named beside a glob", forms: []string{"a*", "typo"}, report: "a typo", failed: "typo"},
		{name: "goes after Get Forms", forms: []string{"*"}, vanish: true, report: "a gone", failed: "gone"},
		{name: "globs", forms: []string{"x*", "[y-z]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, gone := formOf("a", 20), formOf("gone", 20)
			w := newWorld(t, a, gone)
			if c.vanish {
				w.service.Before = func(r formservice.Request) {
					if r.Transaction != formservice.TransactionForms {
						w.service.SetForms(a)
					}
				}
			}
			def := w.several()
			def.Forms = c.forms
			report, err := pipelines.Run(t.Context(), def, options())
			if formsIn(report) != c.report {
				t.Errorf("report of %q", formsIn(report))
			}
			w.checkTidy()
			if c.failed == "" {
				if !isNoForms(err) || len(tree(t, w.dir)) != 0 {
					t.Errorf("error %v, left %v", err, tree(t, w.dir))
				}
				return
			}
			failed, ok := errors.AsType[*account.FormsError](err)
			if !ok || len(failed.Errors) != 1 || !strings.HasPrefix(failed.Errors[0].Error(), "form "+c.failed+": ") {
				t.Fatalf("error %v", err)
			}
			if s, ok := errors.AsType[*extract.ServiceError](err); !ok || s.Code != extract.CodeInvalidForm {
				t.Errorf("error %v", err)
			}
			w.checkForm(a)
		})
	}
}

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

// TestFormsThatWouldMeet in one place fail before anything is asked or written
// of them, and leave the others alone.
func TestFormsThatWouldMeet(t *testing.T) {
	other := formOf("other", 20)
	w := newWorld(t, formOf("a", 20), formOf("xa", 20), other)
	def := w.several()
	def.Outputs = append(def.Outputs, w.definition(definition.Output{Path: "files/x{form}.ndjson", Format: "ndjson"}).Outputs...)
	report, err := pipelines.Run(t.Context(), def, options())
	failed, ok := errors.AsType[*account.FormsError](err)
	if !ok || len(failed.Errors) != 2 || formsIn(report) != "a xa other" {
		t.Fatalf("report of %s, error %v", formsIn(report), err)
	}
	for i, want := range []string{`form a: forms "a" and "xa" would both be written to `, `form xa: forms "xa" and "a" would both be written to `} {
		if got := failed.Errors[i].Error(); !strings.HasPrefix(got, want) {
			t.Errorf("got %s", got)
		}
	}
	for _, r := range w.service.Log() {
		if r.Form != "other" && r.Form != "" {
			t.Errorf("%s of form %s", r.Transaction, r.Form)
		}
	}
	for name := range tree(t, w.dir) {
		if !strings.Contains(name, "other") {
			t.Errorf("wrote %s", name)
		}
	}
	w.checkForm(other)
}

// TestABugInOneForm reaches whoever called Run, who says that it is one.
func TestABugInOneForm(t *testing.T) {
	w := newWorld(t, formOf("a", 20), formOf("b", 20))
	o := options()
	open := o.Tables.Open
	o.Tables.Open = func(ctx context.Context, root string, out definition.Output) (load.Destination, error) {
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
