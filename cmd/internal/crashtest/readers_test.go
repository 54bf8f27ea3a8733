package crashtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
)

// Readings that a reader does not take for data.
var (
	errNothing = errors.New("there is nothing to read")     // no manifest, no _SUCCESS
	errChanged = errors.New("it changed while it was read") // to be read again
)

// reading is what a reader of a place saw.
type reading struct {
	rows rows
	run  string // id of the run that it is whole with
}

// row is a row of the definition's columns.
type row struct {
	ID    int64  `json:"id"`
	Value string `json:"value"`
}

// add decodes a data object into rows. A result that is there already is an
// error: readers see no double.
func (r rows) add(name string, data []byte) error {
	decoded, err := decode(name, data)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", name, err)
	}
	for _, row := range decoded {
		if _, ok := r[row.ID]; ok {
			return fmt.Errorf("result %d is there twice, once more in %s", row.ID, name)
		}
		r[row.ID] = row.Value
	}
	return nil
}

func decode(name string, data []byte) ([]row, error) {
	switch {
	case strings.HasSuffix(name, ".parquet"):
		var err error
		if _, data, err = loadtest.ParquetLines(data); err != nil {
			return nil, err
		}
	case strings.HasSuffix(name, ".csv"):
		return decodeCSV(data)
	}
	var decoded []row
	lines := json.NewDecoder(bytes.NewReader(data))
	for {
		var r row
		if err := lines.Decode(&r); errors.Is(err, io.EOF) {
			return decoded, nil
		} else if err != nil {
			return nil, err
		}
		decoded = append(decoded, r)
	}
}

func decodeCSV(data []byte) ([]row, error) {
	records, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(records) == 0 || !slices.Equal(records[0], []string{"id", "value", "amount", "finished"}) {
		return nil, errors.New("it has no heading")
	}
	decoded := make([]row, 0, len(records))
	for _, record := range records[1:] {
		id, err := strconv.ParseInt(record[0], 10, 64)
		if err != nil {
			return nil, err
		}
		decoded = append(decoded, row{id, record[1]})
	}
	return decoded, nil
}

// byManifest reads what the manifest lists. A part that is not there is
// errChanged: the manifest is to be read again.
func (w *world) byManifest(ctx context.Context) (reading, error) {
	data, err := w.get(ctx, w.manifest())
	if errors.Is(err, fs.ErrNotExist) {
		return reading{}, errNothing
	}
	if err != nil {
		return reading{}, err
	}
	m, err := load.DecodeManifest(data)
	if err != nil {
		return reading{}, err
	}
	r := reading{rows: rows{}, run: m.RunID}
	for _, p := range m.Parts {
		data, err := w.get(ctx, p.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return reading{}, fmt.Errorf("%w: %s is gone", errChanged, p.Path)
		}
		if err != nil {
			return reading{}, err
		}
		sum := sha256.Sum256(data)
		if int64(len(data)) != p.Bytes || hex.EncodeToString(sum[:]) != p.SHA256 {
			err := fmt.Errorf("%s holds %d bytes that are not those of the manifest", p.Path, len(data))
			if w.output.file != "" { // a file is replaced in its place
				err = fmt.Errorf("%w: %w", errChanged, err)
			}
			return reading{}, err
		}
		if err := r.rows.add(p.Path, data); err != nil {
			return reading{}, err
		}
	}
	if int64(len(r.rows)) != m.Rows {
		return reading{}, fmt.Errorf("the parts hold %d rows, the manifest of run %s says %d", len(r.rows), m.RunID, m.Rows)
	}
	return r, nil
}

// byGlob reads every data object, whatever folder it lies in, between two
// readings of _SUCCESS. What it saw counts only where both are equal, so what
// is wrong before that is told after it.
func (w *world) byGlob(ctx context.Context) (reading, error) {
	before, err := w.get(ctx, load.SuccessName)
	if errors.Is(err, fs.ErrNotExist) {
		return reading{}, errNothing
	}
	if err != nil {
		return reading{}, err
	}
	r := reading{rows: rows{}, run: firstLine(before)}
	problem := w.globInto(ctx, r.rows)
	after, err := w.get(ctx, load.SuccessName)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(before, after) {
		return reading{}, errChanged
	}
	return r, errors.Join(problem, err)
}

// firstLine is the run's id in _SUCCESS.
func firstLine(mark []byte) string {
	line, _, _ := strings.Cut(string(mark), "\n")
	return line
}

func (w *world) globInto(ctx context.Context, r rows) error {
	names, err := w.names(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, w.output.extension) {
			continue
		}
		data, err := w.get(ctx, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := r.add(name, data); err != nil {
			return err
		}
	}
	return nil
}

// asFile reads the single file without its manifest.
func (w *world) asFile(ctx context.Context) (reading, error) {
	data, err := w.get(ctx, w.output.file)
	if errors.Is(err, fs.ErrNotExist) {
		return reading{}, errNothing
	}
	if err != nil {
		return reading{}, err
	}
	r := reading{rows: rows{}}
	return r, r.rows.add(w.output.file, data)
}

// manifest is the manifest's name.
func (w *world) manifest() string {
	if w.output.file == "" {
		return load.ManifestName
	}
	return load.FileManifestName(w.output.file)
}

// strays are the visible objects that no reader is told of.
func (w *world) strays(ctx context.Context) ([]string, error) {
	known := map[string]bool{w.manifest(): true}
	if w.output.file == "" {
		known[load.SuccessName] = true
	} else {
		known[load.FileRejectsName(w.output.file)] = true
		stem := strings.TrimSuffix(w.output.file, w.output.extension)
		known[stem+".schema.json"], known[stem+".codebook.csv"] = true, true
	}
	data, err := w.get(ctx, w.manifest())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		m, err := load.DecodeManifest(data)
		if err != nil {
			return nil, err
		}
		for _, p := range m.Parts {
			known[p.Path] = true
		}
	}
	names, err := w.names(ctx)
	return slices.DeleteFunc(names, func(name string) bool {
		beside := strings.HasPrefix(name, "_rejects/") || strings.HasPrefix(name, "_ids/")
		return known[name] || strings.HasPrefix(name, ".") || w.output.file == "" && beside
	}), err
}

// beside gives the id sets and dead letters that no part of the dataset has, and those
// that parts lack.
func (w *world) beside(ctx context.Context) (orphans, missing []string, err error) {
	names, err := w.names(ctx)
	if err != nil {
		return nil, nil, err
	}
	there := slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, "_ids/") && !strings.HasPrefix(name, "_rejects/")
	})
	data, err := w.get(ctx, w.manifest())
	if w.output.file != "" || errors.Is(err, fs.ErrNotExist) {
		return there, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := load.DecodeManifest(data)
	if err != nil {
		return nil, nil, err
	}
	needed := map[string]bool{}
	for _, p := range m.Parts {
		needed[load.IDsName(p.IDs)] = true
		if p.Letters != "" || p.Rejected > 0 {
			needed[load.RejectsName(p.Letters)] = true
		}
	}
	for name := range needed {
		if !slices.Contains(there, name) {
			missing = append(missing, name)
		}
	}
	orphans = slices.DeleteFunc(there, func(name string) bool { return needed[name] })
	return orphans, missing, nil
}

// leftovers are what lies in the control folder, and unfinished uploads.
func (w *world) leftovers(ctx context.Context) ([]string, error) {
	names, err := w.names(ctx)
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, ".") })
	uploads, err := w.uploads(ctx)
	for _, u := range uploads {
		left = append(left, "an upload of "+u)
	}
	return left, err
}
