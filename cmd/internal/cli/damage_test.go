package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// damagedWorld is a pipeline's folder as runs have left it, to be damaged.
type damagedWorld struct {
	*testing.T
	dir, definition string
	// left is what runs left: by the point where they died, "" for one that ended.
	left map[string]map[string][]byte
	want map[string][]byte // the data that a run makes
}

// damagedDefinition rejects a result and has a list with an output of its own.
const damagedDefinition = `forms: [form1]
extract: {to: 2026-03-01, window: 1mo}
state: state
columns:
  - {name: id, from: result_id, type: int64}
  - {name: status, from: "meta:result_status", type: string, pii: truncate(3)}
  - {name: colours, from: "item:12", type: "list<string>", explode: true}
  - {name: price, from: "item:353-0-0", type: "decimal(12,2)"}
load: [{path: "out/{form}.csv"}, {path: "lake/{form}/", format: ndjson, partition: month}]`

// newDamagedWorld runs the definition, and keeps the folder as it was at points of the run.
func newDamagedWorld(t *testing.T) *damagedWorld {
	t.Helper()
	_, server := newService(testKey, smallForm())
	t.Cleanup(server.Close)
	w := &damagedWorld{T: t, dir: t.TempDir(), left: map[string]map[string][]byte{}}
	w.definition = pipelineFile(t, w.dir, "nightly", server.URL, "per_day: 100000, concurrency: 1", damagedDefinition)
	def, err := definition.Load(w.definition, definition.LoadOptions{
		Secrets: definition.Secrets{Lookup: func(string) (string, bool) { return testKey, true }}, Formats: console.Formats(), Schemes: console.Schemes(),
	})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // outputs come to points side by side
	passed := map[string]int{}
	_, err = pipelines.Run(t.Context(), def, pipelines.Options{BuiltIn: console.BuiltIn(slog.New(slog.DiscardHandler)), RunID: "early1", At: func(point string) {
		mu.Lock()
		defer mu.Unlock()
		if passed[point]++; passed[point] <= 2 {
			w.left[fmt.Sprint(point, " ", passed[point])] = w.files()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.left[""], w.want = w.files(), w.data()
	return w
}

// files are the contents of all files but the definition, by their names. A run
// may be moving or removing some of them.
func (w *damagedWorld) files() map[string][]byte {
	found := map[string][]byte{}
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == w.definition {
			return gone(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return gone(err)
		}
		name, _ := filepath.Rel(w.dir, path)
		found[filepath.ToSlash(name)] = data
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// restore puts the folder back as it was.
func (w *damagedWorld) restore(files map[string][]byte) {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range entries {
		if path := filepath.Join(w.dir, e.Name()); path != w.definition {
			if err := os.RemoveAll(path); err != nil {
				w.Fatal(err)
			}
		}
	}
	for name, data := range files {
		write(w.T, w.dir, name, string(data))
	}
}

// data are the files of data as readers find them: those that a manifest lists.
func (w *damagedWorld) data() map[string][]byte {
	found := map[string][]byte{}
	all := w.files()
	for name, data := range all {
		file := ""
		folder, isManifest := strings.CutSuffix(name, load.ManifestName)
		if strings.HasSuffix(name, ".manifest.json") {
			folder, isManifest = filepath.ToSlash(filepath.Dir(name))+"/", true
			file = name
		}
		if !isManifest {
			continue
		}
		m, err := load.DecodeManifest(data)
		if err != nil {
			w.Errorf("%s: %v", name, err)
			continue
		}
		for _, p := range m.Parts { // whatever their generation
			found[cmp.Or(file, folder+fmt.Sprint(p.From, p.To, p.Undated))] = all[folder+p.Path]
		}
	}
	return found
}

// sealed is what a checkpoint's file holds: a checksum, and the text.
func sealed(text []byte) []byte {
	return fmt.Appendf(nil, "%08x %s", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)), text)
}

// unsealed is the text of such a file, nil where the file is another one.
func unsealed(file []byte) []byte {
	_, text, _ := bytes.Cut(file, []byte(" "))
	if !bytes.Equal(sealed(text), file) {
		return nil
	}
	return text
}

// isData tells of the files that hold results: what becomes of them is not
// told by reading them.
func isData(name string) bool {
	name, _, _ = strings.Cut(filepath.Base(name), ".manifest.json")
	return !strings.HasPrefix(name, ".") && (strings.HasPrefix(name, "part-") || strings.HasSuffix(name, ".csv") || strings.HasPrefix(name, "staged-"))
}

// TestDamage cuts each file that earlier runs left, or puts another document in its place,
// and runs the commands that read them. None may take that for a bug of formetl. A run that
// ends well has made the right data, and one that does not tells a cure that works. Each kind
// of file has a fuzz target of its own for the rest.
func TestDamage(t *testing.T) {
	needs.Slow(t)
	w := newDamagedWorld(t)
	for _, point := range []string{"", "read 2", "parts 1"} {
		for file, data := range w.left[point] {
			if isData(file) || point != "" && bytes.Equal(data, w.left[""][file]) {
				continue
			}
			other := []byte("{}")
			if unsealed(data) != nil { // its checksum agrees, so that what follows it is looked at
				other = sealed(other)
			}
			for way, damaged := range map[string][]byte{"cut": data[:len(data)/2], "of another document": other} {
				w.restore(w.left[point])
				write(t, w.dir, file, string(damaged))
				w.judge(fmt.Sprintf("at %q, %s %s", point, file, way), file)
			}
		}
	}
}

// judge looks at what the commands make of a damage.
func (w *damagedWorld) judge(where, file string) {
	var code int
	var told string
	for _, args := range [][]string{{"plan"}, {"state", "show"}, {"clean", "--dry-run"}, {"run"}} {
		code, _, told = inProcess(testKey, append(args, w.definition)...)
		if !slices.Contains([]int{console.ExitOK, console.ExitCantCreate, console.ExitIO, console.ExitConfig}, code) {
			w.Errorf("%s: %v ends with %d:\n%s", where, args, code, told)
			return
		}
	}
	if code != console.ExitOK {
		if !strings.Contains(told, "--full") || code != console.ExitConfig && !strings.Contains(told, filepath.Base(file)) {
			w.Errorf("%s: the run ends with %d and tells no cure:\n%s", where, code, told)
			return
		}
		if code, _, told := inProcess(testKey, "run", "--full", w.definition); code != console.ExitOK {
			w.Errorf("%s: the cure ends with %d:\n%s", where, code, told)
			return
		}
	}
	if got := w.data(); !maps.EqualFunc(got, w.want, bytes.Equal) {
		w.Errorf("%s: after exit %d the data are\n%q, not\n%q\n%s", where, code, got, w.want, told)
	}
}
