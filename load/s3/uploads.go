package s3

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
)

// An upload is aborted several times, with pauses, because a part of it may
// still arrive.
const (
	abortAttempts = 4
	abortPause    = 200 * time.Millisecond
)

// uploads are the multipart uploads of a bucket: the requests to list, ask for
// and abort them.
type uploads struct {
	*bucket
	// ended holds the ids of uploads that this Destination completed or
	// aborted. No other process can still complete them.
	ended  sync.Map
	untold sync.Once // logs once that the store does not list uploads
}

// pending is an unfinished upload that the store lists.
type pending struct {
	name  string // of the object, below the prefix
	id    string
	since time.Time
}

// list returns the unfinished uploads whose names begin with start. If the
// store cannot list them or does not permit it, the list is empty, and only
// uploads with markers are found.
func (u *uploads) list(ctx context.Context, start string) ([]pending, error) {
	var found []pending
	pages := awss3.NewListMultipartUploadsPaginator(u.client, &awss3.ListMultipartUploadsInput{
		Bucket: &u.name, Prefix: u.key(start),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if unlisted(err) {
			u.untold.Do(func() {
				u.options.Logger.LogAttrs(ctx, slog.LevelWarn, "the store does not list unfinished uploads; only those that formetl has marked are found",
					slog.String("path", u.String()), slog.String("error", u.fail(ctx, "list the uploads below", start, err).Error()))
			})
			return nil, nil
		}
		if err != nil {
			return nil, u.fail(ctx, "list the uploads below", start, err)
		}
		for _, up := range page.Uploads {
			name, ok := strings.CutPrefix(aws.ToString(up.Key), u.prefix)
			if ok && strings.HasPrefix(name, start) { // MinIO lists more than the prefix
				found = append(found, pending{name: name, id: aws.ToString(up.UploadId), since: aws.ToTime(up.Initiated)})
			}
		}
	}
	return found, nil
}

// unlisted tells whether an error means that the store does not support or
// permit a request, although the credentials are valid.
func unlisted(err error) bool {
	switch status(err) {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return code(err) != "SignatureDoesNotMatch" && code(err) != "InvalidAccessKeyId"
	}
	return false
}

// ask returns nil if an upload is there. The error is the SDK's.
func (u *uploads) ask(ctx context.Context, name, uploadID string) error {
	_, err := u.client.ListParts(ctx, &awss3.ListPartsInput{
		Bucket: &u.name, Key: u.key(name), UploadId: &uploadID, MaxParts: aws.Int32(1),
	})
	return err
}

// size returns the length of an upload's parts so far. It is 0 if the upload is
// gone, and -1 if unknown.
func (u *uploads) size(ctx context.Context, name, uploadID string) (size int64, gone bool) {
	pages := awss3.NewListPartsPaginator(u.client, &awss3.ListPartsInput{
		Bucket: &u.name, Key: u.key(name), UploadId: &uploadID,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if noUpload(err) {
			return 0, true
		}
		if err != nil {
			return -1, false
		}
		for _, p := range page.Parts {
			size += aws.ToInt64(p.Size)
		}
	}
	return size, false
}

// address returns the address of an upload, for messages.
func (u *uploads) address(name, uploadID string) string {
	return u.path(name) + " (upload " + uploadID + ")"
}

func (u *uploads) abort(ctx context.Context, name, uploadID string) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	if err := u.sendAbort(ctx, name, uploadID); err != nil && !noUpload(err) {
		return u.fail(ctx, "abort the upload of", name, err)
	}
	u.ended.Store(uploadID, true)
	return nil
}

func (u *uploads) sendAbort(ctx context.Context, name, uploadID string) error {
	_, err := u.client.AbortMultipartUpload(ctx, &awss3.AbortMultipartUploadInput{
		Bucket: &u.name, Key: u.key(name), UploadId: &uploadID,
	})
	return err
}

// abortCut aborts an upload after sending a part was broken off. The store may
// still be writing that part, which can keep the upload (Amazon S3 API
// reference, AbortMultipartUpload). So it is aborted until it is gone.
func (u *uploads) abortCut(ctx context.Context, name, uploadID string) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	var err error
	for range abortAttempts {
		if err = u.sendAbort(ctx, name, uploadID); err != nil {
			break
		}
		if !wait(ctx, abortPause) {
			return nil // the last abort succeeded
		}
	}
	if noUpload(err) {
		return nil
	}
	return u.fail(ctx, "abort the upload of", name, err)
}

// abortGone aborts an upload until the store no longer knows it, because a part
// that still arrives can keep it (Amazon S3 API reference,
// AbortMultipartUpload).
func (u *uploads) abortGone(ctx context.Context, name, uploadID string) error {
	for range abortAttempts {
		if err := u.sendAbort(ctx, name, uploadID); err != nil && !noUpload(err) {
			return u.fail(ctx, "abort the upload of", name, err)
		}
		err := u.ask(ctx, name, uploadID)
		if noUpload(err) || unlisted(err) { // the abort succeeded, and the store tells no more
			break
		}
		if err != nil {
			return u.fail(ctx, "abort the upload of", name, err)
		}
		if !wait(ctx, abortPause) {
			return u.checkContext(ctx, "abort the upload of", name)
		}
	}
	u.ended.Store(uploadID, true)
	return nil
}

// wait pauses. It returns false if the context is cancelled meanwhile.
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
