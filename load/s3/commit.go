package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/formetl/formetl/load"
)

// An upload of which a part was cut off is aborted so often, with a pause.
const (
	abortAttempts = 4
	abortPause    = 200 * time.Millisecond
)

// An object whose upload is gone is looked for with pauses that double: 1.55 s
// in all.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = 800 * time.Millisecond
)

// Commit completes the upload under its final name, on the condition that the
// name is free unless p.Replace is set. Whatever the store says to that, the
// object of that name decides: versitygw, for one, says yes to an upload that
// is gone where any object has its name. An upload that is of no more use is
// aborted.
func (d *Destination) Commit(ctx context.Context, p load.Prepared) error {
	s, err := checkStaged(p)
	if err != nil {
		return err
	}
	if err := d.checkContext(ctx, "commit", p.Name); err != nil {
		return err
	}
	if err := d.commit(ctx, p, s); err != nil {
		return err
	}
	d.unmark(ctx, s)
	return nil
}

func (d *Destination) commit(ctx context.Context, p load.Prepared, s staged) (err error) {
	guarded := false
	if !p.Replace {
		c, err := d.conditions(ctx)
		if err != nil {
			return err
		}
		guarded = c.complete
		if s.Upload == "" {
			guarded = c.put
		}
		if !guarded {
			if done, err := d.lookBefore(ctx, p, s); done || err != nil {
				return err
			}
		}
	}
	if s.Upload == "" {
		err = d.putEmpty(ctx, p, s, guarded)
	} else {
		err = d.complete(ctx, p, s, guarded)
	}
	switch {
	case err == nil:
		d.ended.Store(s.Upload, true)
		return d.shown(ctx, p, s)
	case stagedIsGone(err):
		if gone := d.completedElsewhere(ctx, p, s); gone != nil {
			return fmt.Errorf("%w (the store says %s)", gone, code(err))
		}
		return nil
	case unmet(err):
		return d.taken(ctx, p, s)
	}
	return d.fail(ctx, "create", p.Name, err)
}

// stagedIsGone tells that an upload, or a part of it, is not there any more.
func stagedIsGone(err error) bool {
	return noUpload(err) || code(err) == "InvalidPart"
}

// lookBefore is the second best of a store that knows no conditions: it tells
// whether the name is taken, and if so how the commit ends.
func (d *Destination) lookBefore(ctx context.Context, p load.Prepared, s staged) (done bool, err error) {
	_, err = d.head(ctx, p.Name)
	if noKey(err) {
		return false, nil
	}
	if err != nil {
		return false, d.fail(ctx, "create", p.Name, err)
	}
	return true, d.taken(ctx, p, s)
}

// taken ends a commit whose name is taken. A refused Complete leaves its
// upload, which is of no more use.
func (d *Destination) taken(ctx context.Context, p load.Prepared, s staged) error {
	err := d.shown(ctx, p, s)
	switch {
	case errors.Is(err, load.ErrConflict):
		return errors.Join(err, d.Abort(ctx, p))
	case err != nil || s.Upload == "":
		return err
	}
	return d.abort(ctx, p.Name, s.Upload)
}

func (d *Destination) complete(ctx context.Context, p load.Prepared, s staged, guarded bool) error {
	parts := make([]types.CompletedPart, len(s.Parts))
	for i, part := range s.Parts {
		parts[i] = types.CompletedPart{PartNumber: aws.Int32(int32(i + 1)), ETag: aws.String(part.ETag)}
		if part.CRC32 != "" {
			parts[i].ChecksumCRC32 = aws.String(part.CRC32)
		}
	}
	in := &awss3.CompleteMultipartUploadInput{
		Bucket: &d.bucket, Key: d.key(p.Name), ExpectedBucketOwner: d.owner(), UploadId: &s.Upload,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}
	if guarded {
		in.IfNoneMatch = aws.String("*")
	}
	_, err := d.client.CompleteMultipartUpload(ctx, in, func(o *awss3.Options) {
		if d.patient != nil {
			o.HTTPClient = d.patient
		}
	})
	return err
}

// putEmpty writes an empty data object: an upload needs at least one byte.
func (d *Destination) putEmpty(ctx context.Context, p load.Prepared, s staged, guarded bool) error {
	in := d.putInput(p.Name, nil, s.ID)
	in.StorageClass, in.Tagging = types.StorageClass(d.options.StorageClass), d.options.tagging()
	if guarded {
		in.IfNoneMatch = aws.String("*")
	}
	_, err := d.client.PutObject(ctx, in)
	return err
}

// committed tells whether the final name holds just what was prepared: the
// object carries its id, or it has the same length and the same SHA-256.
func (d *Destination) committed(ctx context.Context, p load.Prepared, s staged) error {
	final, err := d.head(ctx, p.Name)
	switch {
	case noKey(err):
		return fmt.Errorf("cannot commit %s: neither it nor its upload is there: %w", d.path(p.Name), load.ErrStagedGone)
	case err != nil:
		return d.fail(ctx, "create", p.Name, err)
	case final.Metadata[idMetadata] == s.ID && aws.ToInt64(final.ContentLength) == p.Bytes:
		return nil
	}
	same, err := d.same(ctx, p, aws.ToInt64(final.ContentLength))
	switch {
	case err != nil:
		return err
	case same:
		return nil
	case p.Replace:
		// The name was taken before, so this says nothing of a conflict: what
		// is gone is what should have replaced it.
		return fmt.Errorf("cannot replace %s: its upload is gone: %w", d.path(p.Name), load.ErrStagedGone)
	}
	return fmt.Errorf("cannot commit %s: an object of that name is there with other content, and nothing is overwritten: %w", d.path(p.Name), load.ErrConflict)
}

// completedElsewhere is committed for an upload that is gone. Another process
// may just be completing it, and a store may take the upload away before it
// shows the object: a missing object is looked for again for a while.
func (d *Destination) completedElsewhere(ctx context.Context, p load.Prepared, s staged) error {
	if _, ended := d.ended.Load(s.Upload); ended {
		return d.committed(ctx, p, s)
	}
	return d.shown(ctx, p, s)
}

// shown is committed for an object that the store says is there, or may be
// about to show.
func (d *Destination) shown(ctx context.Context, p load.Prepared, s staged) error {
	err := d.committed(ctx, p, s)
	for pause := firstLook; pause <= lastLook && errors.Is(err, load.ErrStagedGone); pause *= 2 {
		if !wait(ctx, pause) {
			return d.checkContext(ctx, "commit", p.Name)
		}
		err = d.committed(ctx, p, s)
	}
	return err
}

// same reads an object of the right length and compares its checksum. That is
// rare: another process made the same part.
func (d *Destination) same(ctx context.Context, p load.Prepared, size int64) (bool, error) {
	if size != p.Bytes {
		return false, nil
	}
	out, err := d.client.GetObject(ctx, &awss3.GetObjectInput{Bucket: &d.bucket, Key: d.key(p.Name), ExpectedBucketOwner: d.owner()})
	if err != nil {
		return false, d.fail(ctx, "read", p.Name, err)
	}
	defer func() { _ = out.Body.Close() }() // read only
	h := sha256.New()
	if _, err := io.Copy(h, out.Body); err != nil {
		return false, d.fail(ctx, "read", p.Name, err)
	}
	return hex.EncodeToString(h.Sum(nil)) == p.SHA256, nil
}

func (d *Destination) head(ctx context.Context, name string) (*awss3.HeadObjectOutput, error) {
	return d.client.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: &d.bucket, Key: d.key(name), ExpectedBucketOwner: d.owner()})
}

// Abort aborts the upload, then removes its marker. What is gone already is no
// error. It is done for a cancelled context too, for 2 s: cleaning up is what
// follows a stopped run. A deadline is kept, so that a caller who aborts
// hundreds can bound them all.
func (d *Destination) Abort(ctx context.Context, p load.Prepared) error {
	s, err := checkStaged(p)
	if err != nil || s.Upload == "" {
		return err
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	if err := d.abort(ctx, p.Name, s.Upload); err != nil {
		return err
	}
	d.unmark(ctx, s)
	return nil
}

func (d *Destination) abort(ctx context.Context, name, uploadID string) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	if err := d.sendAbort(ctx, name, uploadID); err != nil && !noUpload(err) {
		return d.fail(ctx, "abort the upload of", name, err)
	}
	d.ended.Store(uploadID, true)
	return nil
}

func (d *Destination) sendAbort(ctx context.Context, name, uploadID string) error {
	_, err := d.client.AbortMultipartUpload(ctx, &awss3.AbortMultipartUploadInput{
		Bucket: &d.bucket, Key: d.key(name), ExpectedBucketOwner: d.owner(), UploadId: &uploadID,
	})
	return err
}

// abortCut aborts an upload of which a part was cut off. A store that still
// writes that part may bring the upload back (Amazon S3 API reference,
// AbortMultipartUpload), so it is aborted until it is gone.
func (d *Destination) abortCut(ctx context.Context, name, uploadID string) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	var err error
	for range abortAttempts {
		if err = d.sendAbort(ctx, name, uploadID); err != nil {
			break
		}
		if !wait(ctx, abortPause) {
			return nil // the last answer was yes
		}
	}
	if noUpload(err) {
		return nil
	}
	return d.fail(ctx, "abort the upload of", name, err)
}

// wait lets a time pass, and tells whether the context is still good then.
func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// checkStaged refuses a prepared object that this package cannot have made. The
// error is a *load.NameError.
func checkStaged(p load.Prepared) (staged, error) {
	if err := load.CheckObjectName(p.Name); err != nil {
		return staged{}, err
	}
	s, err := decodeStaged(p.Staged)
	if err != nil {
		return staged{}, &load.NameError{Name: p.Staged, Problem: err.Error()}
	}
	return s, nil
}
