package s3

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/formetl/formetl/load"
)

// ref is the content of Leftover.Ref, in JSON.
type ref struct {
	Object string `json:"object"`           // the marker or probe object to remove
	Name   string `json:"name,omitempty"`   // the upload's
	Upload string `json:"upload,omitempty"` // the store's id
}

func (r ref) encode() string {
	data, _ := json.Marshal(r) // encoding strings cannot fail
	return string(data)
}

var errNotRef = errors.New("it is no leftover of an S3 destination")

// decodeRef reads a Leftover.Ref. It refuses one that Leftovers cannot have made,
// because Remove must not remove committed data.
func decodeRef(text string) (ref, error) {
	var r ref
	err := json.Unmarshal([]byte(text), &r)
	_, marks := markerRun(r.Object)
	upload := (r.Upload == "") == (r.Name == "") && (r.Name == "" || load.CheckName(r.Name) == nil)
	if err != nil || !marks && !load.IsProbe(r.Object) || !upload {
		return ref{}, errNotRef
	}
	return r, nil
}

// Leftovers returns the uploads that have a marker, and the objects of probes.
func (d *Destination) Leftovers(ctx context.Context) ([]load.Leftover, error) {
	objects, err := d.List(ctx, load.ControlFolder+"/")
	if err != nil {
		return nil, err
	}
	var found []load.Leftover
	for _, name := range load.NamesOf(objects) {
		var l *load.Leftover
		if run, marks := markerRun(name); marks {
			l, err = d.marked(ctx, run, name)
		} else if load.IsProbe(name) {
			l, err = d.probed(ctx, name)
		}
		switch {
		case errors.Is(err, load.ErrNotExist): // it ended meanwhile
		case err != nil:
			return nil, err
		case l != nil:
			found = append(found, *l)
		}
	}
	return found, nil
}

// marked returns the upload that a marker of the run names. A marker that cannot
// be read, or whose upload is gone, is a leftover too.
func (d *Destination) marked(ctx context.Context, run, name string) (*load.Leftover, error) {
	got, err := d.get(ctx, name)
	if err != nil {
		return nil, err
	}
	l := &load.Leftover{Kind: load.UnfinishedUpload, Run: run, Path: d.path(name), Bytes: -1, Ref: ref{Object: name}.encode()}
	m, ok := decodeMarker(got.data)
	if !ok {
		return l, nil
	}
	l.Name, l.Path, l.Since = m.Name, d.path(m.Name)+" (upload "+m.Upload+")", m.Since
	l.Bytes = d.size(ctx, m.Name, m.Upload)
	l.Ref = ref{Object: name, Name: m.Name, Upload: m.Upload}.encode()
	return l, d.checkContext(ctx, "look for the upload of", m.Name)
}

// probed returns a probe object that a dead process left. A probe that is under way is no
// leftover: removing its object would falsify its result.
func (d *Destination) probed(ctx context.Context, name string) (*load.Leftover, error) {
	r, _, age, err := leaseObject{d.store, name}.Read(ctx)
	if err != nil || !d.times.Free(r, age) {
		return nil, err
	}
	return &load.Leftover{Kind: load.Temporary, Path: d.path(name), Bytes: -1, Since: r.Renewed, Ref: ref{Object: name}.encode()}, nil
}

// Remove aborts a leftover's upload until it is gone, then removes its marker
// or probe object.
func (d *Destination) Remove(ctx context.Context, l load.Leftover) error {
	r, err := decodeRef(l.Ref)
	if err != nil {
		return &load.NameError{Name: l.Ref, Problem: err.Error()}
	}
	if r.Upload != "" {
		if err := d.abortGone(ctx, r.Name, r.Upload); err != nil {
			return err
		}
		d.ended.Store(r.Upload, true)
	}
	return d.remove(ctx, r.Object)
}
