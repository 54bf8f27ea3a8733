package output

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// settleKept gathers the columns of the manifests that earlier runs left:
// later runs begin with them, so that a schema is stable. Datasets come
// first, whose older parts stay; a single file is written anew, and its
// columns count only where no dataset has any. An output that the definition
// does not fit any more is set aside.
func (s *Set) settleKept(ctx context.Context) error {
	if s.job.Full {
		return nil
	}
	var sets, files []schemas.Column
	for _, t := range s.live() {
		var columns []schemas.Column
		var err error
		switch o := t.out.(type) {
		case *dataset:
			columns, err = s.job.keptBy(o, sets)
			sets = schemas.Merge(sets, columns)
		case *file:
			if !s.job.goesOn(o.manifest) {
				continue
			}
			if columns, err = ColumnsOf(o.manifest); err != nil {
				err = fmt.Errorf("%s: %w", o.path, err)
			}
			files = schemas.Merge(files, columns)
		}
		if err == nil {
			continue
		}
		if err := s.setAside(ctx, t, err); err != nil {
			return err
		}
	}
	if s.Kept = sets; len(sets) == 0 {
		s.Kept = files
	}
	return nil
}

// goesOn tells whether a file's columns are the base of this run's: it is the
// same form's, by a definition that is run again and again (not an export),
// and names columns as before.
func (j *Job) goesOn(m *load.Manifest) bool {
	return m != nil && j.Def.File != "" && j.Def.Schema == nil && m.Names == j.naming() && m.Form == j.Form
}

// keptBy are the columns of a dataset, if the definition still fits them, and
// those of the datasets before it.
func (j *Job) keptBy(o *dataset, others []schemas.Column) ([]schemas.Column, error) {
	m := o.manifest
	if m == nil {
		return nil, nil
	}
	if o.out.Exploded() {
		return nil, o.checkChild()
	}
	if j.Def.Schema == nil && m.Names != j.naming() {
		return nil, &DatasetChangedError{Path: o.path, What: "naming of columns", Was: cmp.Or(m.Names, "declared"), Is: j.naming()}
	}
	columns, err := ColumnsOf(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.path, err)
	}
	if j.Def.Schema != nil {
		others = j.Def.Schema.Columns
	}
	if err := checkKept(o.path, columns, others); err != nil {
		return nil, err
	}
	if j.Def.Schema == nil {
		return columns, nil
	}
	if o.format.Name == csvFormat {
		if err := checkLists(o.path, m.Schema, j.Def.Schema); err != nil {
			return nil, err
		}
	}
	return columns, checkRules(o.path, m.Schema, j.Def.Schema)
}

// naming is how columns are named that the definition does not name.
func (j *Job) naming() string {
	switch {
	case j.Def.Schema != nil:
		return ""
	case j.Def.Labels:
		return "label"
	}
	return "id"
}

// checkKept refuses columns that rename or retype a committed one, or take
// its name for something else.
func checkKept(path string, kept, columns []schemas.Column) error {
	describe := func(c schemas.Column) string { return c.Name + " " + c.Type.String() + " from " + c.From.String() }
	bySource, byName := make(map[schemas.Source]schemas.Column, len(columns)), make(map[string]schemas.Column, len(columns))
	for _, c := range columns { // of which no two have one source, or names that differ only in case
		bySource[c.From], byName[strings.ToLower(c.Name)] = c, c
	}
	for _, k := range kept {
		is, same := bySource[k.From]
		if same && (is.Name != k.Name || !is.Type.Equal(k.Type)) {
			return &SchemaChangedError{Path: path, Column: k.Name, Was: describe(k), Is: describe(is)}
		}
		if is, taken := byName[strings.ToLower(k.Name)]; taken && is.From != k.From {
			return &SchemaChangedError{Path: path, Column: k.Name, Was: describe(k), Is: describe(is)}
		}
	}
	return nil
}

// manifestOf is what an output's last run left, and its version.
func manifestOf(out output) (*load.Manifest, string) {
	switch o := out.(type) {
	case *dataset:
		return o.manifest, o.base
	case *file:
		return o.manifest, o.base
	}
	return nil, load.NoVersion
}
