package s3

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
)

// pending is an unfinished upload as the store lists it.
type pending struct {
	name  string // of the object, below the prefix
	id    string
	since time.Time
}

// uploads lists the unfinished uploads whose names begin with start. A store
// that cannot, or does not allow it, has none that can be told: markers are
// what is relied on.
func (d *Destination) uploads(ctx context.Context, start string) ([]pending, error) {
	var found []pending
	pages := awss3.NewListMultipartUploadsPaginator(d.client, &awss3.ListMultipartUploadsInput{
		Bucket: &d.bucket, Prefix: d.key(start), ExpectedBucketOwner: d.owner(),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if unlisted(err) {
			d.noUploads.Do(func() {
				d.options.Logger.LogAttrs(ctx, slog.LevelWarn, "the store does not list unfinished uploads; only those that formetl has marked are found",
					slog.String("path", d.String()), slog.String("error", d.fail(ctx, "list the uploads below", start, err).Error()))
			})
			return nil, nil
		}
		if err != nil {
			return nil, d.fail(ctx, "list the uploads below", start, err)
		}
		for _, u := range page.Uploads {
			name, ok := strings.CutPrefix(aws.ToString(u.Key), d.prefix)
			if ok && strings.HasPrefix(name, start) { // MinIO lists more than was asked for
				found = append(found, pending{name: name, id: aws.ToString(u.UploadId), since: aws.ToTime(u.Initiated)})
			}
		}
	}
	return found, nil
}

// unlisted tells that a store does not know a request, or does not permit it,
// while it knows who asks.
func unlisted(err error) bool {
	switch status(err) {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return code(err) != "SignatureDoesNotMatch" && code(err) != "InvalidAccessKeyId"
	}
	return false
}

// ask asks for an upload; its error is the SDK's.
func (d *Destination) ask(ctx context.Context, name, uploadID string) error {
	_, err := d.client.ListParts(ctx, &awss3.ListPartsInput{
		Bucket: &d.bucket, Key: d.key(name), ExpectedBucketOwner: d.owner(), UploadId: &uploadID, MaxParts: aws.Int32(1),
	})
	return err
}

// uploadSize is the length of an upload's parts so far: 0 for one that is
// gone, -1 where that cannot be told.
func (d *Destination) uploadSize(ctx context.Context, name, uploadID string) (size int64, gone bool) {
	pages := awss3.NewListPartsPaginator(d.client, &awss3.ListPartsInput{
		Bucket: &d.bucket, Key: d.key(name), ExpectedBucketOwner: d.owner(), UploadId: &uploadID,
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

// uploadPath is an upload's address, for messages.
func (d *Destination) uploadPath(name, uploadID string) string {
	return d.path(name) + " (upload " + uploadID + ")"
}
