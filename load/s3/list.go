package s3

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
)

// List gives the objects below a folder.
func (d *Destination) List(ctx context.Context, folder string) ([]string, error) {
	if err := load.CheckName(folder); err != nil {
		return nil, err
	}
	return d.list(ctx, folder+"/")
}

// list gives the names that begin with start. Keys that end with a slash are
// folders that some programs make, no objects.
func (d *Destination) list(ctx context.Context, start string) ([]string, error) {
	if err := d.checkContext(ctx, "list", start); err != nil {
		return nil, err
	}
	var names []string
	pages := awss3.NewListObjectsV2Paginator(d.client, &awss3.ListObjectsV2Input{
		Bucket: &d.bucket, Prefix: d.key(start), ExpectedBucketOwner: d.owner(),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, d.fail(ctx, "list", start, err)
		}
		for _, o := range page.Contents {
			name, ok := strings.CutPrefix(aws.ToString(o.Key), d.prefix)
			if ok && !strings.HasSuffix(name, "/") {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names) // directory buckets list in no order
	return names, nil
}
