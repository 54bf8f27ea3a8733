package yeartest

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
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/readback"
)

// dataset is what a pipeline makes of a form, as it was when the test last
// looked.
type dataset struct {
	pipeline *pipeline
	form     *form
	dir      string
	raw      []byte // of the manifest, nil where there is none
	manifest manifest
	parts    map[string]*part // by path
	rows     map[int64]*row   // of all parts
	seen     map[string]string
	fresh    time.Time // wall clock: what was changed from then on is still to be picked up
	pending  *origin   // the first run that failed since one ended well
	unused   []asked   // of the runs since then
}

// manifest is what the test reads of a manifest.
type manifest struct {
	readback.Manifest
	Changes struct {
		Method string          `json:"method"`
		Reason string          `json:"reason"`
		Stale  []readback.Span `json:"stale"`
		Later  []int64         `json:"later"`
	} `json:"changes"`
}

// staleAt tells whether the manifest says that the time of a span is to be read
// again by the next runs.
func (m *manifest) staleAt(s readback.Span) bool {
	return slices.ContainsFunc(m.Changes.Stale, s.Meets)
}

// part is a part that was read.
type part struct {
	readback.Part
	rows     []*row
	modified time.Time
	fresh    bool // it was not there when the test looked before
}

// row is one row of a part.
type row struct {
	id   int64
	text string // see canonical
	part *part
}

// span is a half-open span of wall-clock time. Its from may be the zero time,
// which lies before everything.
type span struct{ from, to time.Time }

// holds tells whether a result of this date lies in the span; one without a
// date lies in none.
func (s span) holds(date time.Time) bool {
	return !date.IsZero() && !date.Before(s.from) && (s.to.IsZero() || date.Before(s.to))
}

// meets tells whether a part and a range have a second in common.
func (s span) meets(p readback.Part) bool {
	return !p.Undated && p.Meets(readback.Span{From: readback.WallTime{Time: s.from}, To: readback.WallTime{Time: s.to}})
}

// look reads what a dataset holds now, if its manifest is another one than it
// was. What is wrong with it in itself is told.
func (d *dataset) look(zone *time.Location) (next *dataset, changed bool, err error) {
	raw, err := os.ReadFile(filepath.Join(d.dir, "_manifest.json"))
	if errors.Is(err, fs.ErrNotExist) {
		if d.raw != nil {
			return nil, false, errors.New("the manifest is gone")
		}
		return d, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if bytes.Equal(raw, d.raw) {
		return d, false, d.untouched(d.parts)
	}
	copied := *d
	next = &copied
	next.raw, next.manifest, next.parts, next.rows = raw, manifest{}, map[string]*part{}, maps.Clone(d.rows)
	if err := json.Unmarshal(raw, &next.manifest); err != nil {
		return nil, false, fmt.Errorf("the manifest: %w", err)
	}
	if err := next.take(d, zone); err != nil {
		return nil, false, err
	}
	return next, true, next.sound()
}

// take reads the parts that were not there before and knows the others.
func (d *dataset) take(before *dataset, zone *time.Location) error {
	for _, e := range d.manifest.Parts {
		if d.parts[e.Path] != nil {
			return fmt.Errorf("the manifest lists %s twice", e.Path)
		}
		old := before.parts[e.Path]
		if old == nil {
			d.parts[e.Path] = &part{Part: e, fresh: true}
			continue
		}
		if old.Part != e {
			return fmt.Errorf("the manifest says of %s\n%+v\nand said\n%+v", e.Path, e, old.Part)
		}
		stays := *old
		stays.fresh = false
		d.parts[e.Path] = &stays
	}
	for path, old := range before.parts {
		if d.parts[path] == nil {
			for _, r := range old.rows {
				delete(d.rows, r.id)
			}
		}
	}
	for _, p := range d.parts {
		if !p.fresh {
			continue
		}
		if err := d.read(p, zone); err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
	}
	kept := map[string]*part{}
	for path, p := range d.parts {
		if !p.fresh {
			kept[path] = p
		}
	}
	return d.untouched(kept)
}

// read reads a part and sets it against what the manifest says of it.
func (d *dataset) read(p *part, zone *time.Location) error {
	data, modified, err := d.file(p.Part)
	if err != nil {
		return err
	}
	if sum, was := d.seen[p.Path]; was && sum != p.SHA256 {
		return errors.New("an object of this name was another one before")
	}
	d.seen[p.Path], p.modified = p.SHA256, modified
	if p.rows, err = decode(p.Path, data, readback.Layout{Zone: zone, Columns: d.manifest.Schema}); err != nil {
		return err
	}
	least, most := int64(0), int64(0)
	for i, r := range p.rows {
		if other := d.rows[r.id]; other != nil {
			return fmt.Errorf("result %d is here as %s and in %s as %s", r.id, r.text, other.part.Path, other.text)
		}
		r.part, d.rows[r.id] = p, r
		if i == 0 || r.id < least {
			least = r.id
		}
		most = max(most, r.id)
	}
	if int64(len(p.rows)) != p.Rows || len(p.rows) == 0 || least != p.MinID || most != p.MaxID {
		return fmt.Errorf("it holds %d rows from %d to %d, the manifest says %d from %d to %d", len(p.rows), least, most, p.Rows, p.MinID, p.MaxID)
	}
	return nil
}

// file reads a part's bytes, which must be those of the manifest.
func (d *dataset) file(e readback.Part) (data []byte, modified time.Time, err error) {
	name := filepath.Join(d.dir, filepath.FromSlash(e.Path))
	info, err := os.Stat(name)
	if err == nil {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, modified, err
	}
	return data, info.ModTime(), e.Check(data)
}

// untouched makes sure that nobody wrote to parts that were read before. Their
// bytes are read again only now and then, see whole.
func (d *dataset) untouched(parts map[string]*part) error {
	for path, p := range parts {
		info, err := os.Stat(filepath.Join(d.dir, filepath.FromSlash(path)))
		if err != nil {
			return err
		}
		if info.Size() != p.Bytes || !info.ModTime().Equal(p.modified) {
			return fmt.Errorf("%s was written to: %d bytes of %s, it had %d of %s", path, info.Size(), info.ModTime(), p.Bytes, p.modified)
		}
	}
	return nil
}

// sound tells what is wrong with the parts as the manifest has them.
func (d *dataset) sound() error {
	var rows int64
	if err := d.manifest.Tiled(d.pipeline.partition); err != nil {
		return err
	}
	for _, e := range d.manifest.Parts {
		rows += e.Rows
	}
	switch {
	case rows != d.manifest.Rows || int64(len(d.rows)) != rows:
		return fmt.Errorf("the manifest says %d rows, its parts %d, and %d results are there", d.manifest.Rows, rows, len(d.rows))
	case d.manifest.Rejected != 0:
		return fmt.Errorf("%d results were rejected", d.manifest.Rejected)
	}
	return nil
}

// whole reads every part again, and makes sure that nothing else is there that
// a reader who globs would take for data, and that _SUCCESS tells of it.
func (d *dataset) whole() error {
	if d.raw == nil {
		return nil
	}
	for _, p := range d.parts {
		if _, _, err := d.file(p.Part); err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
	}
	mark, err := os.ReadFile(filepath.Join(d.dir, "_SUCCESS"))
	if err != nil || strings.TrimSpace(string(mark)) != d.manifest.RunID {
		return fmt.Errorf("_SUCCESS holds %q, the manifest is of run %s; %w", mark, d.manifest.RunID, err)
	}
	return filepath.WalkDir(d.dir, func(name string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() || !strings.HasSuffix(name, "."+d.pipeline.format) {
			return err
		}
		path, err := filepath.Rel(d.dir, name)
		if err == nil && d.parts[filepath.ToSlash(path)] == nil {
			err = fmt.Errorf("%s is no part of the dataset", path)
		}
		return err
	})
}
