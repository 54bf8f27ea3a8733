package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/formetl/formetl/cmd/internal/built"
	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
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

const damagedDefinition = `forms: [form1]
extract: {to: 2026-03-01, window: 1mo}
state: state
%s
load: [{path: "out/{form}.csv"}, {path: "lake/{form}/", format: ndjson, partition: month}]`

// declaredColumns reject a result and have a list with an output of its own.
const declaredColumns = `columns:
  - {name: id, from: result_id, type: int64}
  - {name: status, from: "meta:result_status", type: string, pii: truncate(3)}
  - {name: colours, from: "item:12", type: "list<string>", explode: true}
  - {name: price, from: "item:353-0-0", type: "decimal(12,2)"}
`

// newDamagedWorld runs a definition with these columns, and keeps the folder as
// it was at points of the run.
func newDamagedWorld(t *testing.T, columns string) *damagedWorld {
	t.Helper()
	_, server := newService(testKey, smallForm())
	t.Cleanup(server.Close)
	w := &damagedWorld{T: t, dir: quickFolder(t), left: map[string]map[string][]byte{}}
	w.definition = pipelineFile(t, w.dir, "nightly", server.URL, "per_day: 100000, concurrency: 1", fmt.Sprintf(damagedDefinition, columns))
	def, err := definition.Load(w.definition, definition.LoadOptions{
		Secrets: definition.Secrets{Lookup: func(string) (string, bool) { return testKey, true }}, Formats: built.Formats(), Schemes: built.Schemes(),
	})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // outputs come to points side by side
	passed := map[string]int{}
	_, err = pipelines.Run(t.Context(), def, pipelines.Options{Options: account.Options{Tables: built.Tables(slog.New(slog.DiscardHandler)), RunID: "early1"}, At: func(point string) {
		mu.Lock()
		defer mu.Unlock()
		if passed[point]++; passed[point] <= 2 {
			w.left[fmt.Sprint(point, " ", passed[point])] = w.files()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if code, told := w.do("run", w.definition, "--metrics", filepath.Join(w.dir, "metrics.prom")); code != exit.OK {
		t.Fatalf("the run ended with %d:\n%s", code, told)
	}
	w.left[""], w.want = w.files(), w.data()
	w.holdsCheckpoint()
	return w
}

// holdsCheckpoint checks that what is damaged has a checkpoint's files in it
// wherever a run has one, and none where the run has ended.
func (w *damagedWorld) holdsCheckpoint() {
	for _, point := range []string{"read 2", "prepared 2", "parts 1", ""} {
		kinds := map[string]int{}
		for name := range w.left[point] {
			if ok, _ := filepath.Match("state/checkpoint/*/*", name); ok {
				base := filepath.Base(name)
				kinds[base[strings.IndexByte(base, '-')+1:]]++
			}
		}
		want := map[string]int{}
		switch point {
		case "read 2", "prepared 2":
			want = map[string]int{"header": 1, "record": 2, "rows": 2}
		}
		if !maps.Equal(kinds, want) {
			w.Errorf("at %q the checkpoint has the files %v, not %v", point, kinds, want)
		}
	}
}

// quickFolder is a folder in memory where the system has one: each of the many
// runs of this test syncs a dozen files.
func quickFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "formetl-damage-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// do runs a command in this process.
func (w *damagedWorld) do(args ...string) (code int, told string) {
	var out, stderr bytes.Buffer
	code = Main(args, strings.NewReader(""), &out, &stderr, func(name string) (string, bool) { return testKey, name == definition.KeyVariable })
	return code, stderr.String()
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

// damages are the ways in which a file is damaged.
func damages(name string, data []byte) map[string][]byte {
	ways := map[string][]byte{
		"emptied": {}, "cut": data[:len(data)/2], "binary": []byte("\x00\xff\x1f\x8b\x08PK\x03\x04{}"),
		"null": []byte("null"), "a list": []byte("[]"), "an object": []byte("{}"), "text": []byte("x\n"), "twice": slices.Concat(data, data),
	}
	if filepath.Ext(name) == ".jsonl" {
		data, _, _ = bytes.Cut(data, []byte("\n"))
	}
	text := unsealed(data)
	if text != nil { // its checksum is made to agree, so that what follows it is looked at
		data = text
		for _, way := range []string{"null", "a list", "an object", "text"} {
			ways["sealed, "+way] = sealed(ways[way])
		}
	}
	var doc any
	if json.Unmarshal(data, &doc) != nil {
		return ways
	}
	damageJSON(doc, "", func(what string) {
		damaged, err := json.Marshal(doc)
		switch {
		case err != nil:
		case text != nil:
			ways[what] = sealed(damaged)
		default:
			ways[what] = append(damaged, '\n')
		}
	})
	return ways
}

// damageJSON renames each key of a document and gives each value another type,
// one at a time: of the elements of a list only the first one's.
func damageJSON(v any, path string, damaged func(what string)) {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			was := v[0]
			v[0] = otherType(was)
			damaged(path + "[0] of another type")
			v[0] = was
			damageJSON(was, path+"[0]", damaged)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			was := v[key]
			delete(v, key)
			v["x"+key] = was
			damaged(path + "." + key + " renamed")
			delete(v, "x"+key)
			v[key] = was
			if strings.Count(path, ".") < 2 { // deeper ones end the reading in the same way
				v[key] = otherType(was)
				damaged(path + "." + key + " of another type")
				v[key] = was
			}
			damageJSON(was, path+"."+key, damaged)
		}
	}
}

func otherType(v any) any {
	switch v.(type) {
	case string:
		return -7
	case nil, float64:
		return "x y"
	}
	return "none"
}

// isData tells of the files that hold results: what becomes of them is not
// told by reading them.
func isData(name string) bool {
	name, _, _ = strings.Cut(filepath.Base(name), ".manifest.json")
	return !strings.HasPrefix(name, ".") && (strings.HasPrefix(name, "part-") || strings.HasSuffix(name, ".csv") || strings.HasPrefix(name, "staged-"))
}

// TestDamage damages each file that earlier runs left in each way, and runs the
// commands that read them. None may take that for a bug of formetl. A run that
// ends well has made the right data, and one that does not tells a cure that
// works.
func TestDamage(t *testing.T) {
	for name, world := range map[string]struct {
		columns string
		points  []string
	}{
		"inferred": {"", []string{"", "read 2", "parts 1", "parts 2"}},
		"declared": {declaredColumns, []string{"", "prepared 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDamagedWorld(t, world.columns)
			each, tried := 1, 0
			if os.Getenv("FORMETL_TEST_DAMAGE") != "all" {
				each = damagesApart
			}
			for _, point := range world.points {
				for _, file := range slices.Sorted(maps.Keys(w.left[point])) {
					data := w.left[point][file]
					if isData(file) || point != "" && bytes.Equal(data, w.left[""][file]) {
						continue
					}
					ways := damages(file, data)
					for _, way := range slices.Sorted(maps.Keys(ways)) {
						if tried++; tried%each == 0 {
							w.damage(point, file, way, ways[way])
						}
					}
				}
			}
		})
	}
}

// damagesApart is how many damages lie between two that are tried, unless
// FORMETL_TEST_DAMAGE is "all". It has no divisor in common with the number of
// ways that most files are damaged in, so that all kinds are met.
const damagesApart = 25

// damage tries one damage of one file.
func (w *damagedWorld) damage(point, file, way string, damaged []byte) {
	w.restore(w.left[point])
	write(w.T, w.dir, file, string(damaged))
	where := fmt.Sprintf("at %q, %s %s", point, file, way)
	metrics := filepath.Join(w.dir, "metrics.prom")
	for _, args := range [][]string{
		{"plan", w.definition},
		{"state", "show", w.definition},
		{"clean", "--dry-run", w.definition},
		{"schema", "ddl", w.definition, "--dialect", "duckdb"},
		{"replay", "--dry-run", w.definition},
		{"run", w.definition, "--metrics", metrics},
	} {
		code, told := w.do(args...)
		switch code {
		case exit.OK, exit.CantCreate, exit.IO, exit.Config:
		case exit.Data: // dead letters that cannot be read stay, and are told of
			if args[0] != "replay" || !strings.Contains(told, "mend it, or move the object away") {
				w.Errorf("%s: %v ends with %d:\n%s", where, args[:2], code, told)
			}
		default:
			w.Errorf("%s: %v ends with %d:\n%s", where, args[:2], code, told)
			continue
		}
		if args[0] == "run" {
			w.judge(where, file, code, told)
		}
	}
}

// judge looks at what a run made of a damage.
func (w *damagedWorld) judge(where, file string, code int, told string) {
	if code != exit.OK {
		if !strings.Contains(told, "--full") || code != exit.Config && !strings.Contains(told, filepath.Base(file)) {
			w.Errorf("%s: the run ends with %d and tells no cure:\n%s", where, code, told)
			return
		}
		if err := os.Remove(filepath.Join(w.dir, file)); err != nil {
			w.Fatal(err)
		}
		if code, told := w.do("run", "--full", w.definition); code != exit.OK {
			w.Errorf("%s: the cure ends with %d:\n%s", where, code, told)
			return
		}
	}
	got := w.data()
	for name, want := range w.want {
		if !bytes.Equal(got[name], want) {
			w.Errorf("%s: after exit %d %s is\n%q, not\n%q\n%s", where, code, name, got[name], want, told)
		}
	}
	if len(got) != len(w.want) {
		w.Errorf("%s: there are %d files of data, not %d", where, len(got), len(w.want))
	}
}
