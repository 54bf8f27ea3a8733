package s3

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/formetl/formetl/load"
)

// ref is the content of Leftover.Ref, in JSON.
type ref struct {
	Object string `json:"object,omitempty"` // the marker or probe object to remove
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
	object := marks || load.IsProbe(r.Object) || r.Object == "" && r.Upload != ""
	upload := (r.Upload == "") == (r.Name == "") && (r.Name == "" || load.CheckName(r.Name) == nil)
	if err != nil || !object || !upload {
		return ref{}, errNotRef
	}
	return r, nil
}

// Leftovers returns the uploads that have a marker, other uploads that the store lists, and the
// objects of probes. It lists uploads before it reads markers. So if a live run's upload was
// listed, its marker is there by then, or the upload has ended.
func (d *Destination) Leftovers(ctx context.Context) ([]load.Leftover, error) {
	listed, err := d.pending(ctx)
	if err != nil {
		return nil, err
	}
	objects, err := d.List(ctx, load.ControlFolder+"/")
	if err != nil {
		return nil, err
	}
	var found []load.Leftover
	known := map[string]bool{} // ids of the uploads that were found
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
			r, _ := decodeRef(l.Ref) // it was encoded just now
			known[r.Upload] = true
		}
	}
	for _, u := range listed {
		if known[u.id] {
			continue
		}
		l, err := d.unmarked(ctx, u)
		if err != nil {
			return nil, err
		}
		if l != nil {
			found = append(found, *l)
		}
	}
	return found, nil
}

// unmarked returns an upload that has no marker: its run died between creating and marking it, or
// never learnt that it was created, or it is another program's.
func (d *Destination) unmarked(ctx context.Context, u pending) (*load.Leftover, error) {
	l := &load.Leftover{
		Kind: load.UnfinishedUpload, Name: u.name, Path: d.address(u.name, u.id), Since: u.since, Ref: ref{Name: u.name, Upload: u.id}.encode(),
	}
	if load.IsProbe(u.name) {
		l.Kind = load.Temporary
		_, alive, err := d.probing(ctx, u.name)
		if alive || err != nil && !errors.Is(err, load.ErrNotExist) {
			return nil, err
		}
	}
	if err := d.ask(ctx, u.name, u.id); noUpload(err) {
		return nil, nil // it ended meanwhile
	}
	l.Bytes = d.size(ctx, u.name, u.id)
	return l, d.checkContext(ctx, "look for the upload of", u.name)
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
	l.Name, l.Path, l.Since = m.Name, d.address(m.Name, m.Upload), m.Since
	l.Bytes = d.size(ctx, m.Name, m.Upload)
	l.Ref = ref{Object: name, Name: m.Name, Upload: m.Upload}.encode()
	return l, d.checkContext(ctx, "look for the upload of", m.Name)
}

// probed returns a probe object that a dead process left. A probe that is under way is no
// leftover: removing its object would falsify its result.
func (d *Destination) probed(ctx context.Context, name string) (*load.Leftover, error) {
	since, alive, err := d.probing(ctx, name)
	if err != nil || alive {
		return nil, err
	}
	return &load.Leftover{Kind: load.Temporary, Path: d.path(name), Bytes: -1, Since: since, Ref: ref{Object: name}.encode()}, nil
}

// probing tells whether the probe of an object is under way, and since when. The error wraps
// load.ErrNotExist if there is no such object.
func (d *Destination) probing(ctx context.Context, name string) (since time.Time, alive bool, err error) {
	r, _, age, err := leaseObject{d.store, name}.Read(ctx)
	return r.Renewed, err == nil && !d.times.Free(r, age), err
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
	if r.Object == "" {
		return nil
	}
	return d.remove(ctx, r.Object)
}
