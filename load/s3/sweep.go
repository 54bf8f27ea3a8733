package s3

import (
	"context"
	"encoding/json"
	"errors"
	"path"

	"github.com/formetl/formetl/load"
)

// sweeper finds and removes what runs left behind.
type sweeper struct {
	*bucket
	uploads *uploads
	store   *store
	leases  *leases
}

// ref is the content of Leftover.Ref, in JSON.
type ref struct {
	Object string `json:"object,omitempty"` // a marker or probe object to remove
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
	object := r.Object == "" || marks || load.IsProbe(r.Object)
	upload := (r.Upload == "") == (r.Name == "") && (r.Name == "" || load.CheckName(r.Name) == nil)
	if err != nil || r == (ref{}) || !object || !upload {
		return ref{}, errNotRef
	}
	return r, nil
}

// Leftovers returns the uploads that have a marker, other uploads that the store lists,
// and the objects of probes. It lists uploads before it reads markers. So if a live
// run's upload was listed, its marker is there by then, or the upload has ended.
func (w *sweeper) Leftovers(ctx context.Context) ([]load.Leftover, error) {
	listed, err := w.uploads.list(ctx, "")
	if err != nil {
		return nil, err
	}
	objects, err := w.store.List(ctx, load.ControlFolder+"/")
	if err != nil {
		return nil, err
	}
	s := &sweep{w: w, known: map[string]bool{}, others: map[string]bool{}}
	for _, name := range load.NamesOf(objects) {
		if run, marks := markerRun(name); marks {
			err = s.marked(ctx, run, name)
		} else if load.IsProbe(name) {
			err = s.probe(ctx, name)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, u := range listed {
		if err := s.unmarked(ctx, u); err != nil {
			return nil, err
		}
	}
	return s.found, nil
}

// sweep is one search for leftovers.
type sweep struct {
	w      *sweeper
	found  []load.Leftover
	known  map[string]bool // ids of the uploads that were found
	others map[string]bool // by folder: whether it is a destination of its own
}

func (s *sweep) add(l load.Leftover, r ref) {
	s.known[r.Upload] = true
	l.Ref = r.encode()
	s.found = append(s.found, l)
}

// marked adds the upload that a marker of the run names. A marker that cannot
// be read, or whose upload is gone, is a leftover too.
func (s *sweep) marked(ctx context.Context, run, name string) error {
	got, err := s.w.get(ctx, name)
	if errors.Is(err, load.ErrNotExist) {
		return nil // the upload ended meanwhile
	}
	if err != nil {
		return err
	}
	l := load.Leftover{Kind: load.UnfinishedUpload, Run: run, Path: s.w.path(name), Bytes: -1}
	m, ok := decodeMarker(got.data)
	if !ok {
		s.add(l, ref{Object: name})
		return nil
	}
	l.Name, l.Path, l.Since = m.Name, s.w.uploads.address(m.Name, m.Upload), m.Since
	l.Bytes, _ = s.w.uploads.size(ctx, m.Name, m.Upload)
	s.add(l, ref{Object: name, Name: m.Name, Upload: m.Upload})
	return s.w.checkContext(ctx, "look for the upload of", m.Name)
}

// unmarked adds an upload that the store lists and that has no marker. A run
// rarely dies between creating an upload and marking it. So most of these
// belong to another program or to a destination below this one. Destinations
// below have a control folder, and their uploads are left out.
func (s *sweep) unmarked(ctx context.Context, u pending) error {
	if s.known[u.id] {
		return nil
	}
	if load.IsProbe(u.name) {
		s.add(load.Leftover{Kind: load.Temporary, Path: s.w.uploads.address(u.name, u.id), Bytes: -1, Since: u.since}, ref{Name: u.name, Upload: u.id})
		return nil
	}
	for folder := path.Dir(u.name); folder != "."; folder = path.Dir(folder) {
		other, err := s.destination(ctx, folder)
		if other || err != nil {
			return err
		}
	}
	size, gone := s.w.uploads.size(ctx, u.name, u.id)
	if !gone { // otherwise it ended meanwhile
		s.add(load.Leftover{
			Kind: load.UnfinishedUpload, Name: u.name, Path: s.w.uploads.address(u.name, u.id), Bytes: size, Since: u.since,
		}, ref{Name: u.name, Upload: u.id})
	}
	return s.w.checkContext(ctx, "look for the upload of", u.name)
}

// destination tells whether a folder is a destination of its own: it has a
// control folder.
func (s *sweep) destination(ctx context.Context, folder string) (bool, error) {
	other, known := s.others[folder]
	if known {
		return other, nil
	}
	start := path.Join(folder, load.ControlFolder) + "/"
	below, err := s.w.store.list(ctx, start, 1)
	if err != nil {
		return false, err
	}
	s.others[folder] = len(below) > 0
	return s.others[folder], nil
}

// probe adds a probe object that a dead process left, and its upload. A probe
// that is under way is no leftover: removing its object would falsify its
// result.
func (s *sweep) probe(ctx context.Context, name string) error {
	r, _, age, err := leaseObject{s.w.store, name}.Read(ctx)
	if errors.Is(err, load.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	uploads, err := s.w.uploads.list(ctx, name) // MinIO lists uploads for an exact key only
	if err != nil {
		return err
	}
	if !s.w.leases.times.Free(r, age) {
		for _, u := range uploads {
			s.known[u.id] = true
		}
		return nil
	}
	for _, u := range uploads {
		if err := s.unmarked(ctx, u); err != nil {
			return err
		}
	}
	s.add(load.Leftover{Kind: load.Temporary, Path: s.w.path(name), Bytes: -1, Since: r.Renewed}, ref{Object: name})
	return nil
}

// Remove aborts a leftover's upload until it is gone, then removes its marker
// or probe object.
func (w *sweeper) Remove(ctx context.Context, l load.Leftover) error {
	r, err := decodeRef(l.Ref)
	if err != nil {
		return &load.NameError{Name: l.Ref, Problem: err.Error()}
	}
	if r.Upload != "" {
		if err := w.uploads.abortGone(ctx, r.Name, r.Upload); err != nil {
			return err
		}
	}
	if r.Object == "" {
		return nil
	}
	return w.remove(ctx, r.Object)
}
