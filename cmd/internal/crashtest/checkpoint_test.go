package crashtest

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
)

// checkpoints are what is left in the state folder of what runs had read.
func (w *world) checkpoints() []string {
	w.t.Helper()
	left, err := filepath.Glob(filepath.Join(w.dir, "state", "checkpoint", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return left
}

// kept are the beginnings of the windows that a checkpoint holds whole. A record
// that its process did not finish writing is left out.
func (w *world) kept() map[string]bool {
	w.t.Helper()
	records, err := filepath.Glob(filepath.Join(w.dir, "state", "checkpoint", "*", "*-record"))
	if err != nil {
		w.t.Fatal(err)
	}
	windows := map[string]bool{}
	for _, name := range records {
		data, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		_, data, _ = bytes.Cut(data, []byte(" ")) // behind a checksum
		var r struct {
			Window struct {
				From string `json:"from"`
			} `json:"window"`
			Through int64 `json:"through"`
			Open    bool  `json:"open"` // it ends with a page that was not full
		}
		if err := json.Unmarshal(data, &r); err == nil && (r.Open || r.Through == math.MaxInt64) {
			windows[r.Window.From] = true
		}
	}
	return windows
}
