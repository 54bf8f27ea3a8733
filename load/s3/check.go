package s3

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
)

// Check tells whether the upload is there, or its object is. An empty object
// is nowhere before its commit, so nothing of it can be gone.
func (d *Destination) Check(ctx context.Context, p load.Prepared) error {
	s, err := checkStaged(p)
	if err != nil {
		return err
	}
	if err := d.checkContext(ctx, "check", p.Name); err != nil || s.Upload == "" {
		return err
	}
	_, err = d.client.ListParts(ctx, &awss3.ListPartsInput{
		Bucket: &d.bucket, Key: d.key(p.Name), ExpectedBucketOwner: d.owner(), UploadId: &s.Upload, MaxParts: aws.Int32(1),
	})
	if err == nil || unlisted(err) {
		return nil // where it may not be asked for it is taken for there: the commit tells
	}
	if !noUpload(err) {
		return d.fail(ctx, "look for the upload of", p.Name, err)
	}
	err = d.committed(ctx, p, s)
	if errors.Is(err, load.ErrConflict) {
		// Another object has the name: what matters here is that the upload
		// cannot get it any more.
		return fmt.Errorf("%s cannot be committed: its upload is gone, and the name is taken by other content: %w", d.path(p.Name), load.ErrStagedGone)
	}
	return err
}
