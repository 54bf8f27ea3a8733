package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
)

// store reads and writes small objects. It uses conditional requests if the
// server honours them.
type store struct {
	*bucket
	*prober
}

// Get reads an object. Its version is its ETag.
func (s *store) Get(ctx context.Context, name string) ([]byte, string, error) {
	if err := load.CheckName(name); err != nil {
		return nil, "", err
	}
	o, err := s.get(ctx, name)
	return o.data, o.version, err
}

// Put writes an object. S3 replaces objects in one step.
func (s *store) Put(ctx context.Context, name string, data []byte, version string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	_, err := s.put(ctx, name, data, version)
	return err
}

// put does what Put does, and also returns the new version.
func (s *store) put(ctx context.Context, name string, data []byte, version string) (string, error) {
	in := s.putInput(name, data, rand.Text())
	if version != load.AnyVersion {
		c, err := s.conditions(ctx)
		switch {
		case err != nil:
			return "", err
		case !c.put:
			return s.putUnguarded(ctx, name, in, version)
		case version == load.NoVersion:
			in.IfNoneMatch = aws.String("*")
		default:
			in.IfMatch = aws.String(version)
		}
	}
	out, err := s.client.PutObject(ctx, in)
	if err == nil {
		return aws.ToString(out.ETag), nil
	}
	if unmet(err) || version != load.AnyVersion && noKey(err) {
		return s.wrote(ctx, name, in)
	}
	return "", s.fail(ctx, "write", name, err)
}

// wrote returns the object's version if the request in wrote the object,
// otherwise ErrConflict. The answer to a first attempt may have been lost, so
// that the SDK's retry found the object already there.
func (s *store) wrote(ctx context.Context, name string, in *awss3.PutObjectInput) (string, error) {
	now, err := s.head(ctx, name)
	if err != nil && !noKey(err) {
		return "", s.fail(ctx, "write", name, err)
	}
	if err == nil && now.Metadata[idMetadata] == in.Metadata[idMetadata] {
		return aws.ToString(now.ETag), nil
	}
	return "", fmt.Errorf("cannot write %s: %w", s.path(name), load.ErrConflict)
}

// putUnguarded does what put does, for a server that ignores conditions. It
// checks the version before the write, and after it whose object is there.
func (s *store) putUnguarded(ctx context.Context, name string, in *awss3.PutObjectInput, version string) (string, error) {
	current, err := s.get(ctx, name)
	if err != nil && !errors.Is(err, load.ErrNotExist) {
		return "", err
	}
	if current.version != version { // a missing object has load.NoVersion
		return "", fmt.Errorf("cannot write %s: %w", s.path(name), load.ErrConflict)
	}
	if _, err := s.client.PutObject(ctx, in); err != nil {
		return "", s.fail(ctx, "write", name, err)
	}
	return s.wrote(ctx, name, in)
}

// Delete removes an object. It is no error if the object is missing.
func (s *store) Delete(ctx context.Context, name string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	return s.remove(ctx, name)
}

// List returns the objects whose names begin with prefix. Keys that end with a
// slash are left out, because some programs make them as folders.
func (s *store) List(ctx context.Context, prefix string) ([]load.Object, error) {
	if err := load.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	return s.list(ctx, prefix, 0)
}

// list returns the objects whose names begin with prefix. If most is not 0, it
// may stop after that many.
func (s *store) list(ctx context.Context, prefix string, most int32) ([]load.Object, error) {
	in := &awss3.ListObjectsV2Input{Bucket: &s.name, Prefix: s.key(prefix)}
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
				objects = append(objects, load.Object{Name: name, Bytes: aws.ToInt64(o.Size), Changed: aws.ToTime(o.LastModified)})
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
