package crashtest

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// spools are what is left in the state folder of what runs had read.
func (w *world) spools() []string {
	w.t.Helper()
	left, err := filepath.Glob(filepath.Join(w.dir, "state", "spool", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return left
}

// kept are the beginnings of the windows that the spool has a record of.
func (w *world) kept() map[string]bool {
	w.t.Helper()
	records, err := filepath.Glob(filepath.Join(w.dir, "state", "spool", "*", "index", "*.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	windows := map[string]bool{}
	for _, name := range records {
		data, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		var r struct {
			Window struct {
				From string `json:"from"`
			} `json:"window"`
		}
		if err := json.Unmarshal(data, &r); err != nil || r.Window.From == "" {
			w.t.Fatalf("%s: %v", name, err)
		}
		windows[r.Window.From] = true
	}
	return windows
}
