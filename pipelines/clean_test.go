package pipelines_test

import (
	"github.com/formetl/formetl/load/local"
)

// leave stages what a run that died left at a folder.
func (w *world) leave(root, run, name string) {
	w.t.Helper()
	d, err := local.New(w.path(root))
	if err != nil {
		w.t.Fatal(err)
	}
	u, err := d.Stage(w.t.Context(), run, name)
	if err == nil {
		_, err = u.Write([]byte("left"))
	}
	if err == nil {
		_, err = u.Prepare(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
