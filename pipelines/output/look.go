package output

import (
	"context"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// Look opens the outputs without leases, and reads only the manifests of
// datasets. Like Open it fails if the definition no longer fits them.
func Look(ctx context.Context, job *Job) (*Set, error) {
	s := &Set{job: job}
	for _, out := range job.Def.Outputs {
		t := &target{def: out}
		s.targets = append(s.targets, t)
		if !out.Dataset() {
			continue
		}
		p, err := job.lookAt(ctx, out)
		if err != nil {
			return s, err
		}
		d := &dataset{place: p}
		t.out = d
		if err := d.fits(); err != nil {
			return s, err
		}
		if job.Full {
			continue
		}
		if _, err := p.columnsKept(); err != nil {
			return s, err
		}
	}
	return s, nil
}

// lookAt returns the place of an output with the manifest that an earlier run
// left there. It takes no lease.
func (j *Job) lookAt(ctx context.Context, out definition.Output) (*place, error) {
	p, err := j.placeOf(out)
	if err != nil {
		return nil, err
	}
	if p.dest, err = j.Tables.Open(ctx, p.Root, out); err != nil {
		return nil, err
	}
	p.manifest, p.base, err = ManifestAt(ctx, p.dest, p.Manifest, out)
	return p, p.named(err)
}

// Manifest returns the manifest that an earlier run left at an output, or nil
// if there is none.
func (j *Job) Manifest(ctx context.Context, out definition.Output) (*load.Manifest, error) {
	p, err := j.lookAt(ctx, out)
	if err != nil {
		return nil, err
	}
	return p.manifest, nil
}

// Location says where an output of a form lies.
type Location struct {
	Path     string // full path, without placeholders, for people
	Root     string // root of its destination
	Scope    string // scope of its lease: "" for a dataset, a file's name for that file
	Manifest string // name of its manifest at the destination
}

// Locate returns the location of a form's output. The path may depend on the run's id.
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
