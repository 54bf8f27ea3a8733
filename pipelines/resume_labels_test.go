package pipelines_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// companions are the manifests and codebooks of a world, without what tells runs apart:
// their ids, times and requests.
func (r *resumed) companions() map[string]string {
	r.t.Helper()
	files := tree(r.t, r.dir)
	maps.DeleteFunc(files, func(name, _ string) bool {
		return !strings.HasSuffix(name, ".codebook.csv") && !strings.HasSuffix(name, ".schema.json") && !strings.HasSuffix(name, "manifest.json")
	})
	for name := range files {
		if !strings.HasSuffix(name, "manifest.json") {
			continue
		}
		m := readManifest(r.t, filepath.Join(r.dir, name))
		m.RunID, m.CreatedAt, m.Requests = "run", time.Time{}, load.Requests{}
		data, err := m.Encode()
		if err != nil {
			r.t.Fatal(err)
		}
		files[name] = string(data)
	}
	return files
}

// TestResumedCompanions: wherever a run was stopped, the codebook and the manifest of the
// run that resumes it are those of a run that nobody disturbed. The headings come with
// first pages alone, and the run that resumes may read none.
func TestResumedCompanions(t *testing.T) {
	declare := func(unknown schemas.Unknown) func(def *definition.Definition) {
		return func(def *definition.Definition) {
			def.Schema = declared(t, unknown, schemas.OnErrorReject, "string")
		}
	}
	for name, edit := range map[string]func(def *definition.Definition){
		"inferred": func(*definition.Definition) {}, "by label": func(def *definition.Definition) { def.Labels = true },
		"declared": declare(schemas.UnknownIgnore), "declared, the rest added": declare(schemas.UnknownAdd),
	} {
		for _, again := range []bool{false, true} { // also where manifests give the columns
			t.Run(fmt.Sprintf("%s, again %t", name, again), func(t *testing.T) {
				define := func(r *resumed) *definition.Definition {
					def := r.daily(fileAndDays()...)
					edit(def)
					return def
				}
				begin := func() *resumed {
					r := newResumed(t)
					if again {
						r.asked(define(r))
						answer, _ := r.form.Get(2)
						answer.Items[0].Values = []string{"changed"}
						if err := r.form.Update(answer); err != nil {
							t.Fatal(err)
						}
					}
					return r
				}
				undisturbed := begin()
				undisturbed.asked(define(undisturbed))
				want := undisturbed.companions()
				for _, stop := range []struct {
					point string
					n     int
				}{{"read", 1}, {"read", 3}, {"verified", 1}, {"snapshot", 1}, {"prepared", 2}} {
					r := begin()
					r.stopAt(define(r), stop.point, stop.n)
					r.asked(define(r))
					sameTree(t, want, r.companions())
					if t.Failed() {
						t.Fatalf("stopped at %s %d: %s", stop.point, stop.n, r.companions()["days/_manifest.json"])
					}
				}
			})
		}
	}
}
