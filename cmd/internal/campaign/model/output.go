package model

import (
	"bytes"
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

	"github.com/formetl/formetl/cmd/internal/readback"
)

// Output is where a definition writes to: a folder on disk, be it that of an S3
// server, or a table of a database, which is looked at as a dataset of one folder.
type Output struct {
	DSN       string // of a table, whose name with its schema is Dir; else ""
	Soft      bool   // a table keeps the rows of vanished results
	Audit     bool   // rows of a table tell the run that changed them
	Name      string // of a single file; "" for a dataset
	Dir       string // the dataset, or where the file lies
	Partition string // of a dataset
	Extension string // of data, with its dot
	Explode   string // of a child output the source of its list
}

// Dataset tells a dataset from a single file.
func (o *Output) Dataset() bool { return o.Name == "" }

// String names the output.
func (o *Output) String() string { return filepath.Join(o.Dir, o.Name) }

// manifestName is where the manifest lies.
func (o *Output) manifestName() string {
	if o.Dataset() {
		return readback.ManifestName
	}
	return o.Name + ".manifest.json"
}

// Look is what lies at an output.
type Look struct {
	Files    map[string][]byte // by their names, with slashes
	Manifest *readback.Manifest
	Rows     map[int64][]Read // by id: more than one only in a child output
	Marked   bool             // _SUCCESS is there
}

// Read is a row that was read, and from where.
type Read struct {
	Row  readback.Row
	Part readback.Part
}

// Look reads what lies at an output now. What is wrong with it in itself is
// the error.
func (d *Definition) Look(o *Output) (*Look, error) {
	l := &Look{Files: map[string][]byte{}, Rows: map[int64][]Read{}}
	var err error
	if o.DSN != "" {
		l.Files, err = readback.Table(o.DSN, o.Dir, o.Explode, d.Zone)
	} else {
		err = l.gather(o)
	}
	if err != nil {
		return nil, err
	}
	raw, there := l.Files[o.manifestName()]
	_, l.Marked = l.Files[readback.SuccessName]
	if !there {
		return l, nil
	}
	l.Manifest = &readback.Manifest{}
	if err := json.Unmarshal(raw, l.Manifest); err != nil {
		l.Manifest = nil
		return l, fmt.Errorf("the manifest of %s: %w", o, err)
	}
	return l, errors.Join(l.read(d, o), l.glob(o), l.checkIDs(o))
}

// gather reads the bytes of all files of the output.
func (l *Look) gather(o *Output) error {
	if !o.Dataset() {
		for _, name := range []string{o.Name, o.manifestName()} {
			data, err := os.ReadFile(filepath.Join(o.Dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			l.Files[name] = data
		}
		return nil
	}
	err := filepath.WalkDir(o.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(o.Dir, path)
		if err == nil {
			l.Files[filepath.ToSlash(name)], err = os.ReadFile(path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// read reads the parts that the manifest lists.
func (l *Look) read(d *Definition, o *Output) error {
	layout := readback.Layout{Zone: d.Zone, Columns: l.Manifest.Schema}
	var total int64
	var problems []error
	for _, p := range l.Manifest.Parts {
		total += p.Rows
		data, there := l.Files[p.Path]
		err := p.Check(data)
		if !there {
			err = errors.New("it is not there")
		}
		if err == nil {
			err = l.readPart(p, data, layout, o.Explode != "")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s of %s: %w", p.Path, o, err))
		}
	}
	if total != l.Manifest.Rows {
		problems = append(problems, fmt.Errorf("the manifest of %s says %d rows, and its parts %d", o, l.Manifest.Rows, total))
	}
	if o.Dataset() {
		problems = append(problems, l.Manifest.Tiled(o.Partition, o.DSN == ""))
	}
	return errors.Join(problems...)
}

func (l *Look) readPart(p readback.Part, data []byte, layout readback.Layout, child bool) error {
	rows, err := readback.Read(p.Path, data, layout)
	if err != nil {
		return err
	}
	if int64(len(rows)) != p.Rows {
		return fmt.Errorf("it holds %d rows, the manifest says %d", len(rows), p.Rows)
	}
	idColumn, least, most := "", int64(0), int64(0)
	for _, c := range layout.Columns {
		if c.From == "result_id" {
			idColumn = c.Name
		}
	}
	for i, row := range rows {
		id, err := strconv.ParseInt(row[idColumn].Value(), 10, 64)
		if err != nil {
			return fmt.Errorf("row %d has no id: %w", i+1, err)
		}
		if other := l.Rows[id]; !child && len(other) > 0 {
			return fmt.Errorf("result %d is here and in %s too", id, other[0].Part.Path)
		}
		l.Rows[id] = append(l.Rows[id], Read{row, p})
		if i == 0 || id < least {
			least = id
		}
		most = max(most, id)
	}
	// A child's part names the ids of the results that it was made of, and some
	// of them have no element.
	if outside := least < p.MinID || most > p.MaxID; len(rows) > 0 && (outside || !child && (least != p.MinID || most != p.MaxID)) {
		return fmt.Errorf("its ids go from %d to %d, the manifest says %d to %d", least, most, p.MinID, p.MaxID)
	}
	return nil
}

// glob makes sure that one who globs sees what the manifest lists, if _SUCCESS
// lets him.
func (l *Look) glob(o *Output) error {
	if !o.Dataset() || !l.Marked {
		return nil
	}
	mark, _, _ := strings.Cut(string(l.Files[readback.SuccessName]), "\n")
	if mark != l.Manifest.RunID {
		return fmt.Errorf("_SUCCESS of %s is of run %q, the manifest of %q", o, mark, l.Manifest.RunID)
	}
	listed := map[string]bool{}
	for _, p := range l.Manifest.Parts {
		listed[p.Path] = true
	}
	for _, name := range slices.Sorted(maps.Keys(l.Files)) {
		if strings.HasSuffix(name, o.Extension) && !listed[name] && !strings.HasPrefix(filepath.Base(name), "foreign") {
			return fmt.Errorf("a glob for data at %s finds %s, which the manifest does not list", o, name)
		}
	}
	return nil
}

// RejectsUndated tells whether the dead letters of a dataset name a result without a
// date.
func (l *Look) RejectsUndated() bool {
	for name, data := range l.Files {
		if !strings.HasPrefix(name, "_rejects/") {
			continue
		}
		for line := range bytes.Lines(data) {
			letter := struct {
				Window string `json:"window"`
			}{}
			if json.Unmarshal(line, &letter) == nil && letter.Window == "undated" {
				return true
			}
		}
	}
	return false
}

// written tells whether a part of this name was there and held something else.
func (l *Look) written(p readback.Part) bool {
	return l.Manifest != nil && slices.ContainsFunc(l.Manifest.Parts, func(was readback.Part) bool { return was.Path == p.Path && was.SHA256 != p.SHA256 })
}

// Same tells whether readers of the manifest see what they saw before. Look has
// made sure that its parts are what it says; others may lie beside them while a
// commit is in the middle.
func (l *Look) Same(before *Look, o *Output) bool {
	return bytes.Equal(l.Files[o.manifestName()], before.Files[o.manifestName()])
}

// SameData tells whether the data are byte for byte as before.
func (l *Look) SameData(before *Look) bool {
	data := func(files map[string][]byte) map[string][]byte {
		files = maps.Clone(files)
		maps.DeleteFunc(files, func(name string, _ []byte) bool { return !readback.IsData(name) })
		return files
	}
	return maps.EqualFunc(data(l.Files), data(before.Files), bytes.Equal)
}
