package s3

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
)

var _ load.Sweeper = (*Destination)(nil)

// ref is what Remove needs of a leftover, as JSON.
type ref struct {
	Object string `json:"object,omitempty"` // a marker or probe object
	Name   string `json:"name,omitempty"`   // the upload's
	Upload string `json:"upload,omitempty"` // the store's id
}

func (r ref) encode() string {
	data, _ := json.Marshal(r) // strings cannot fail
	return string(data)
}

var errNotRef = errors.New("it is no leftover of an S3 destination")

// decodeRef refuses what does not come from Leftovers: Remove must not remove
// anything visible.
func decodeRef(text string) (ref, error) {
	var r ref
	if json.Unmarshal([]byte(text), &r) != nil || r == (ref{}) || (r.Upload == "") != (r.Name == "") {
		return ref{}, errNotRef
	}
	if r.Name != "" && load.CheckName(r.Name) != nil {
		return ref{}, errNotRef
	}
	if _, marks := markerRun(r.Object); r.Object != "" && !marks && !isProbe(r.Object) {
		return ref{}, errNotRef
	}
	return r, nil
}

// Leftovers gives the uploads that are marked, those that the store lists
// besides, and what is left of probes. The store's list comes first: an upload
// on it that is a live run's has its marker by the time that markers are read,
// or is gone.
func (d *Destination) Leftovers(ctx context.Context) ([]load.Leftover, error) {
	if err := d.checkContext(ctx, "list", load.ControlFolder); err != nil {
		return nil, err
	}
	listed, err := d.uploads(ctx, "")
	if err != nil {
		return nil, err
	}
	objects, err := d.List(ctx, load.ControlFolder+"/")
	if err != nil {
		return nil, err
	}
	s := &sweep{d: d, known: map[string]bool{}, others: map[string]bool{}}
	for _, name := range load.NamesOf(objects) {
		if run, marks := markerRun(name); marks {
			err = s.marked(ctx, run, name)
		} else if isProbe(name) {
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

// sweep is one look for leftovers.
type sweep struct {
	d      *Destination
	found  []load.Leftover
	known  map[string]bool // ids of uploads found so far
	others map[string]bool // whether a folder is a destination of its own
}

func (s *sweep) add(l load.Leftover, r ref) {
	s.known[r.Upload] = true
	l.Ref = r.encode()
	s.found = append(s.found, l)
}

// marked adds the upload of a marker. A marker without an upload that can be
// told, or whose upload is gone, is still to be removed.
func (s *sweep) marked(ctx context.Context, run, name string) error {
	got, err := s.d.get(ctx, name)
	if errors.Is(err, load.ErrNotExist) {
		return nil // ended meanwhile
	}
	if err != nil {
		return err
	}
	l := load.Leftover{Kind: load.UnfinishedUpload, Run: run, Path: s.d.path(name), Bytes: -1}
	m, ok := decodeMarker(got.data)
	if !ok {
		s.add(l, ref{Object: name})
		return nil
	}
	l.Name, l.Path, l.Since = m.Name, s.d.uploadPath(m.Name, m.Upload), m.Since
	l.Bytes, _ = s.d.uploadSize(ctx, m.Name, m.Upload)
	s.add(l, ref{Object: name, Name: m.Name, Upload: m.Upload})
	return s.d.checkContext(ctx, "look for the upload of", m.Name)
}

// unmarked adds an upload that the store lists. That a run begins it and dies
// before it is marked is rare, so most that has no marker here is another
// program's, or of a destination below this one. Those below are told by
// their control folders and left out.
func (s *sweep) unmarked(ctx context.Context, u pending) error {
	if s.known[u.id] {
		return nil
	}
	if isProbe(u.name) {
		s.add(load.Leftover{Kind: load.Temporary, Path: s.d.uploadPath(u.name, u.id), Bytes: -1, Since: u.since}, ref{Name: u.name, Upload: u.id})
		return nil
	}
	for folder := path.Dir(u.name); folder != "."; folder = path.Dir(folder) {
		other, err := s.destination(ctx, folder)
		if other || err != nil {
			return err
		}
	}
	size, gone := s.d.uploadSize(ctx, u.name, u.id)
	if !gone { // else it ended meanwhile
		s.add(load.Leftover{
			Kind: load.UnfinishedUpload, Name: u.name, Path: s.d.uploadPath(u.name, u.id), Bytes: size, Since: u.since,
		}, ref{Name: u.name, Upload: u.id})
	}
	return s.d.checkContext(ctx, "look for the upload of", u.name)
}

// destination tells whether a folder has a control folder of its own.
func (s *sweep) destination(ctx context.Context, folder string) (bool, error) {
	other, known := s.others[folder]
	if known {
		return other, nil
	}
	start := path.Join(folder, load.ControlFolder) + "/"
	page, err := s.d.client.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{
		Bucket: &s.d.bucket, Prefix: s.d.key(start), ExpectedBucketOwner: s.d.owner(), MaxKeys: aws.Int32(1),
	})
	if err != nil {
		return false, s.d.fail(ctx, "list", start, err)
	}
	s.others[folder] = len(page.Contents) > 0
	return s.others[folder], nil
}

// probe adds a probe object that its process left, and the upload that it may
// have. A probe that is under way is no leftover: it would take the removal
// for an answer of the store.
func (s *sweep) probe(ctx context.Context, name string) error {
	r, _, age, err := leaseObject{s.d, name}.read(ctx)
	if errors.Is(err, load.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	uploads, err := s.d.uploads(ctx, name) // MinIO lists them for the whole key alone
	if err != nil {
		return err
	}
	if !s.d.leasing.free(r, age) {
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
	s.add(load.Leftover{Kind: load.Temporary, Path: s.d.path(name), Bytes: -1, Since: r.Renewed}, ref{Object: name})
	return nil
}

// Remove aborts a leftover's upload until it is gone, then removes its marker.
func (d *Destination) Remove(ctx context.Context, l load.Leftover) error {
	r, err := decodeRef(l.Ref)
	if err != nil {
		return &load.NameError{Name: l.Ref, Problem: err.Error()}
	}
	if err := d.checkContext(ctx, "remove", r.Name); err != nil {
		return err
	}
	if r.Upload != "" {
		if err := d.abortGone(ctx, r.Name, r.Upload); err != nil {
			return err
		}
	}
	if r.Object == "" {
		return nil
	}
	return d.remove(ctx, r.Object)
}

// abortGone aborts an upload until the store no longer knows it: a part that
// still arrives brings it back (Amazon S3 API reference, AbortMultipartUpload).
func (d *Destination) abortGone(ctx context.Context, name, uploadID string) error {
	for range abortAttempts {
		if err := d.sendAbort(ctx, name, uploadID); err != nil && !noUpload(err) {
			return d.fail(ctx, "abort the upload of", name, err)
		}
		err := d.ask(ctx, name, uploadID)
		if noUpload(err) || unlisted(err) { // it said yes to the abort: that must do
			break
		}
		if err != nil {
			return d.fail(ctx, "abort the upload of", name, err)
		}
		if !wait(ctx, abortPause) {
			return d.checkContext(ctx, "abort the upload of", name)
		}
	}
	d.ended.Store(uploadID, true)
	return nil
}

// Holders reads the lease objects. Those that Acquire would replace are left
// out.
func (d *Destination) Holders(ctx context.Context) ([]load.ScopedHolder, error) {
	objects, err := d.List(ctx, path.Join(load.ControlFolder, leaseName))
	if err != nil {
		return nil, err
	}
	var held []load.ScopedHolder
	for _, name := range load.NamesOf(objects) {
		if base := path.Base(name); path.Dir(name) != load.ControlFolder || base != leaseName && !strings.HasPrefix(base, leaseName+"-") {
			continue
		}
		r, _, age, err := leaseObject{d, name}.read(ctx)
		switch {
		case errors.Is(err, load.ErrNotExist): // released meanwhile
		case err != nil:
			return nil, err
		case !d.leasing.free(r, age):
			held = append(held, load.ScopedHolder{Scope: r.Scope, Holder: r.Holder})
		}
	}
	return held, nil
}
