package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
)

// look is what lies at an output.
type look struct {
	files    map[string][]byte // by their names, with slashes
	manifest *load.Manifest    // nil: there is none
	rows     map[int64][]read  // by id: more than one only in a child output
	ids      map[string]idset.Set
	rejected map[string]bool   // results that are among the dead letters
	stored   map[string]stored // the rows of a table, by id and position
	marked   bool              // _SUCCESS is there
}

// read is a row that was read, and from where.
type read struct {
	row  row
	part load.Part
}

// stored is a row of a table, also that of a result that vanished.
type stored struct{ version, run, content string }

// lookAt reads what lies at an output now. What is wrong with it in itself is the error.
func (d *definition) lookAt(o *output) (l *look, err error) {
	l = &look{files: map[string][]byte{}, rows: map[int64][]read{}, ids: map[string]idset.Set{}, rejected: map[string]bool{}, stored: map[string]stored{}}
	switch {
	case o.dsn != "":
		if err := l.table(d.zone, o); err != nil || l.manifest == nil {
			return l, err
		}
	default:
		l.files, err = readFiles(o.dir)
		maps.DeleteFunc(l.files, func(name string, _ []byte) bool { return !strings.HasPrefix(name, o.name) }) // of other files
	}
	raw, there := l.files[o.manifestName()]
	mark, marked := l.files[load.SuccessName]
	l.marked = l.marked || marked
	if there && err == nil {
		l.manifest = &load.Manifest{}
		err = json.Unmarshal(raw, l.manifest)
	}
	if err != nil {
		return l, err
	}
	for name, data := range l.files {
		if strings.HasPrefix(name, load.RejectsFolder+"/") || name == load.FileRejectsName(o.name) {
			letters, _ := readLines(data) // what is cut rejects nobody
			l.reject(letters)
		}
	}
	if l.manifest == nil {
		return l, nil
	}
	if run, _, _ := strings.Cut(string(mark), "\n"); marked && run != l.manifest.RunID {
		err = fmt.Errorf("_SUCCESS is of run %q, the manifest of %q", run, l.manifest.RunID)
	}
	data := l.data(o)
	for _, name := range l.needless(o) {
		if _, visible := data[name]; marked && visible {
			err = fmt.Errorf("a glob for data finds %s, which the manifest does not list", name)
		}
	}
	if err = errors.Join(l.read(d, o), err); err != nil {
		return l, fmt.Errorf("%s: %w", o, err)
	}
	return l, nil
}

// manifestName is where the manifest lies.
func (o *output) manifestName() string {
	if o.dataset() {
		return load.ManifestName
	}
	return load.FileManifestName(o.name)
}

// readFiles reads all files below a folder, which may not be there.
func readFiles(folder string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err == nil {
			files[filepath.ToSlash(name)], err = os.ReadFile(path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return files, err
}

// reject notes the results of dead letters.
func (l *look) reject(letters []row) {
	for _, letter := range letters {
		l.rejected[fmt.Sprint(letter["result_id"])] = true
	}
}

// read reads the files that the manifest lists.
func (l *look) read(d *definition, o *output) error {
	var total int64
	for _, p := range l.manifest.Parts {
		total += p.Rows
		if o.dsn != "" {
			continue
		}
		data, there := l.files[p.Path]
		if !there || int64(len(data)) != p.Bytes || idset.Sum(data) != p.SHA256 {
			return fmt.Errorf("%s is not there, or its %d bytes are not those of the manifest", p.Path, len(data))
		}
		rows, err := readRows(p.Path, data, l.manifest.Schema, d.zone)
		if err == nil && p.IDs != "" {
			set := l.files[load.IDsName(p.IDs)]
			if l.ids[p.Path], err = idset.Decode(set); idset.Sum(set) != p.IDs {
				err = errors.New("its id set is missing or damaged")
			}
		}
		if err == nil {
			err = l.add(p, rows, o)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
	}
	if total != l.manifest.Rows {
		return fmt.Errorf("the manifest says %d rows, and its parts %d", l.manifest.Rows, total)
	}
	return nil
}

// add adds the rows of a part, and compares them with what the manifest and the part's id
// set say. A child's part is made of results of which some have no element.
func (l *look) add(p load.Part, rows []row, o *output) error {
	if int64(len(rows)) != p.Rows {
		return fmt.Errorf("it holds %d rows, the manifest says %d", len(rows), p.Rows)
	}
	var ids []int64
	for _, r := range rows {
		text, _ := r[keyOf(l.manifest.Schema)].(string)
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("a row has no id: %w", err)
		}
		if other := l.rows[id]; len(other) > 0 && (o.explode == "" || other[0].part.Path != p.Path) {
			return fmt.Errorf("result %d is here and in %s too", id, other[0].part.Path)
		}
		l.rows[id], ids = append(l.rows[id], read{r, p}), append(ids, id)
	}
	held := idset.Of(ids...)
	of := held
	if o.dataset() {
		of = l.ids[p.Path]
	}
	switch {
	case !held.Without(of).IsEmpty() || o.explode == "" && !of.Equal(held):
		return fmt.Errorf("its id set is %s, and its rows are of %s", of, held)
	case len(ids) > 0 && (o.dataset() || o.explode == "") && (of.Min() != p.MinID || of.Max() != p.MaxID):
		return fmt.Errorf("its ids go from %d to %d, the manifest says %d to %d", of.Min(), of.Max(), p.MinID, p.MaxID)
	}
	return nil
}

// keyOf is the column that holds the id.
func keyOf(columns []load.Column) string {
	return columns[slices.IndexFunc(columns, func(c load.Column) bool { return c.From == "result_id" })].Name
}

// needless are the files that a manifest does not need: data, id sets and dead letters of no
// part, and what a run staged.
func (l *look) needless(o *output) (names []string) {
	needed := map[string]bool{}
	if l.manifest != nil {
		for _, p := range l.manifest.Parts {
			needed[p.Path], needed[load.IDsName(p.IDs)], needed[load.RejectsName(p.Letters)] = true, true, true
		}
	}
	data := l.data(o)
	for _, name := range slices.Sorted(maps.Keys(l.files)) {
		folder, _, _ := strings.Cut(name, "/")
		_, isData := data[name]
		isKept := isData || folder == "_ids" || folder == load.RejectsFolder || folder == ".formetl" && !strings.HasPrefix(name, ".formetl/lock")
		if isKept && !needed[name] {
			names = append(names, name)
		}
	}
	return names
}

// data are the files that a glob for data finds.
func (l *look) data(o *output) map[string][]byte {
	data := maps.Clone(l.files)
	maps.DeleteFunc(data, func(name string, _ []byte) bool {
		return !strings.HasSuffix(name, o.extension) || name == o.manifestName()
	})
	return data
}

// windowOf is the time of a part, and spanOf that of a range.
func windowOf(p load.Part) extract.Window { return spanOf(load.Range{From: p.From, To: p.To}) }

func spanOf(r load.Range) extract.Window { return extract.Window{From: r.From.Time, To: r.To.Time} }
