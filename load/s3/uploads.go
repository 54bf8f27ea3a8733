package s3

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
)

// An upload is aborted several times, with pauses, because a part of it may
// still arrive.
const (
	abortAttempts = 4
	abortPause    = 200 * time.Millisecond
)

// pending is an unfinished upload that the store lists.
type pending struct {
	name  string // of the object, below the prefix
	id    string
	since time.Time
}

// pending lists the unfinished uploads. A store that does not list them, or does not permit it,
// has none to tell of.
func (b *bucket) pending(ctx context.Context) (found []pending, err error) {
	pages := awss3.NewListMultipartUploadsPaginator(b.client, &awss3.ListMultipartUploadsInput{Bucket: &b.name, Prefix: &b.prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if tellsNothing(err) {
			return nil, nil
		}
		if err != nil {
			return nil, b.fail(ctx, "list the uploads below", "", err)
		}
		for _, up := range page.Uploads {
			if name, ok := strings.CutPrefix(aws.ToString(up.Key), b.prefix); ok && load.CheckName(name) == nil {
				found = append(found, pending{name, aws.ToString(up.UploadId), aws.ToTime(up.Initiated)})
			}
		}
	}
	return found, nil
}

// address is an upload's address, for messages.
func (b *bucket) address(name, uploadID string) string {
	return b.path(name) + " (upload " + uploadID + ")"
}

// tellsNothing tells whether an error means that the store does not support or
// permit a request, although the credentials are valid.
func tellsNothing(err error) bool {
	switch status(err) {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return code(err) != "SignatureDoesNotMatch" && code(err) != "InvalidAccessKeyId"
	}
	return false
}

// ask returns nil if an upload is there. The error is the SDK's.
func (b *bucket) ask(ctx context.Context, name, uploadID string) error {
	_, err := b.client.ListParts(ctx, &awss3.ListPartsInput{
		Bucket: &b.name, Key: b.key(name), UploadId: &uploadID, MaxParts: aws.Int32(1),
	})
	return err
}

// size returns the length of an upload's parts so far. It is 0 if the upload is
// gone, and -1 if unknown.
func (b *bucket) size(ctx context.Context, name, uploadID string) (size int64) {
	pages := awss3.NewListPartsPaginator(b.client, &awss3.ListPartsInput{
		Bucket: &b.name, Key: b.key(name), UploadId: &uploadID,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if noUpload(err) {
			return 0
		}
		if err != nil {
			return -1
		}
		for _, p := range page.Parts {
			size += aws.ToInt64(p.Size)
		}
	}
	return size
}

func (b *bucket) abort(ctx context.Context, name, uploadID string) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	if err := b.sendAbort(ctx, name, uploadID); err != nil && !noUpload(err) {
		return b.fail(ctx, "abort the upload of", name, err)
	}
	return nil
}

func (b *bucket) sendAbort(ctx context.Context, name, uploadID string) error {
	_, err := b.client.AbortMultipartUpload(ctx, &awss3.AbortMultipartUploadInput{
		Bucket: &b.name, Key: b.key(name), UploadId: &uploadID,
	})
	return err
}

// abortCut aborts an upload after sending a part was broken off. The store may
// still be writing that part, which can keep the upload (Amazon S3 API
// reference, AbortMultipartUpload). So it is aborted until it is gone.
func (b *bucket) abortCut(ctx context.Context, name, uploadID string) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	var err error
	for range abortAttempts {
		if err = b.sendAbort(ctx, name, uploadID); err != nil {
			break
		}
		if load.Pause(ctx, abortPause) != nil {
			return nil // the last abort succeeded
		}
	}
	if noUpload(err) {
		return nil
	}
	return b.fail(ctx, "abort the upload of", name, err)
}

// abortGone aborts an upload until the store no longer knows it, because a part
// that still arrives can keep it (Amazon S3 API reference,
// AbortMultipartUpload).
func (b *bucket) abortGone(ctx context.Context, name, uploadID string) error {
	for range abortAttempts {
		if err := b.sendAbort(ctx, name, uploadID); err != nil && !noUpload(err) {
			return b.fail(ctx, "abort the upload of", name, err)
		}
		err := b.ask(ctx, name, uploadID)
		if noUpload(err) || tellsNothing(err) { // the abort succeeded, and the store tells no more
			return nil
		}
		if err != nil {
			return b.fail(ctx, "abort the upload of", name, err)
		}
		if load.Pause(ctx, abortPause) != nil {
			return b.checkContext(ctx, "abort the upload of", name)
		}
	}
	return &load.TemporaryError{Op: "abort the upload of", Path: b.path(name), Hint: "try again later", Err: errors.New("a part of it still arrives")}
}
