package s3

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
)

// List gives the objects whose names begin with prefix, a thousand with each
// request. Keys that end with a slash are left out: some programs make them as
// folders.
func (s *store) List(ctx context.Context, prefix string) ([]load.Object, error) {
	if err := load.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	return s.list(ctx, prefix, 0)
}

// list gives the objects whose names begin with prefix. If most is not 0, it
// may stop after so many.
func (s *store) list(ctx context.Context, prefix string, most int32) ([]load.Object, error) {
	if err := s.checkContext(ctx, "list", prefix); err != nil {
		return nil, err
	}
	in := &awss3.ListObjectsV2Input{Bucket: &s.name, Prefix: s.key(prefix), ExpectedBucketOwner: s.owner()}
	if most > 0 {
		in.MaxKeys = &most
	}
	var objects []load.Object
	pages := awss3.NewListObjectsV2Paginator(s.client, in)
	for pages.HasMorePages() && (most == 0 || len(objects) < int(most)) {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, s.fail(ctx, "list", prefix, err)
		}
		for _, o := range page.Contents {
			name, ok := strings.CutPrefix(aws.ToString(o.Key), s.prefix)
			if ok && !strings.HasSuffix(name, "/") {
				objects = append(objects, load.Object{Name: name, Bytes: aws.ToInt64(o.Size)})
			}
		}
	}
	// Directory buckets do not list in order.
	slices.SortFunc(objects, func(a, b load.Object) int { return strings.Compare(a.Name, b.Name) })
	return objects, nil
}

// checkNoFolder refuses a file if objects lie below its name, as if it were a
// folder. Some stores refuse such a file only after all of it was sent.
func (s *store) checkNoFolder(ctx context.Context, file string) error {
	if file == "" {
		return nil
	}
	below, err := s.list(ctx, file+"/", 1)
	if err != nil || len(below) == 0 {
		return err
	}
	return &load.CreateError{
		Op: "create", Path: s.path(file), Hint: "choose another name, or move them away",
		Err: fmt.Errorf("objects lie below its name, as if it were a folder: %s", s.path(below[0].Name)),
	}
}
