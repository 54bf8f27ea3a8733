package output

import (
	"context"
	"errors"
	"fmt"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// Look is Open without leases: it reads the manifests of datasets and nothing
// else. It refuses what Open would refuse: a definition that no longer fits them.
func Look(ctx context.Context, job *Job) (*Set, error) {
	s := &Set{job: job}
	for _, out := range job.Def.Outputs {
		t := &target{def: out}
		s.targets = append(s.targets, t)
		if !out.Dataset() {
			continue
		}
		d, err := job.datasetAt(ctx, out)
		if err != nil {
			return s, err
		}
		t.out = d
		if err := d.fits(); err != nil {
			return s, err
		}
		if job.Full {
			continue
		}
		if _, err := job.keptBy(d, nil); err != nil {
			return s, err
		}
	}
	return s, nil
}

// datasetAt is a dataset as an earlier run left it, to look at only.
func (j *Job) datasetAt(ctx context.Context, out definition.Output) (*dataset, error) {
	e, err := j.encodingOf(out)
	if err != nil {
		return nil, err
	}
	m, err := j.Manifest(ctx, out)
	if err != nil {
		return nil, err
	}
	path, err := definition.ExpandPath(out.Path, j.Def.PathValues(j.Form, j.RunID))
	return &dataset{encoding: e, place: place{path: path}, manifest: m}, err
}

// Manifest reads the manifest that an earlier run left at an output, nil if
// there is none.
func (j *Job) Manifest(ctx context.Context, out definition.Output) (*load.Manifest, error) {
	at, err := Locate(j.Def, out, j.Form, j.RunID)
	if err != nil {
		return nil, err
	}
	dest, err := j.Tables.Open(ctx, at.Root, out)
	if err != nil {
		return nil, err
	}
	m, _, err := ManifestAt(ctx, dest, at.Manifest, out)
	if errors.Is(err, load.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at.Path, err)
	}
	return m, nil
}

// Location is where an output of a form lies.
type Location struct {
	Path     string // with its placeholders replaced, for people
	Root     string // of its destination
	Scope    string // of its lease: "" for a dataset, a file's name for that file
	Manifest string // name of its manifest at the destination
}

// Locate tells where an output of a form lies.
func Locate(def *definition.Definition, out definition.Output, form, runID string) (at Location, err error) {
	if at.Path, err = definition.ExpandPath(out.Path, def.PathValues(form, runID)); err != nil {
		return at, err
	}
	if at.Root, at.Manifest = at.Path, load.ManifestName; !out.Dataset() {
		at.Root, at.Scope = definition.SplitPath(at.Path)
		at.Manifest = load.FileManifestName(at.Scope)
	}
	return at, nil
}
