package s3

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
)

// Get reads an object. The returned version is the object's ETag.
func (d *Destination) Get(ctx context.Context, name string) ([]byte, string, error) {
	if err := load.CheckName(name); err != nil {
		return nil, "", err
	}
	o, err := d.get(ctx, name)
	return o.data, o.version, err
}

// Put writes an object if its version is the one given, which may also be load.NoVersion or
// load.AnyVersion. S3 replaces objects atomically.
func (d *Destination) Put(ctx context.Context, name string, data []byte, version string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	_, err := d.put(ctx, name, data, version)
	return err
}

// put writes an object as Put does, and also returns the object's new version.
func (d *Destination) put(ctx context.Context, name string, data []byte, version string) (string, error) {
	in := d.putInput(name, data, rand.Text())
	switch version {
	case load.AnyVersion:
	case load.NoVersion:
		in.IfNoneMatch = aws.String("*")
	default:
		in.IfMatch = aws.String(version)
	}
	out, err := d.client.PutObject(ctx, in)
	switch {
	case err == nil && version == load.AnyVersion:
		return aws.ToString(out.ETag), nil
	case err == nil:
		return aws.ToString(out.ETag), d.checkConditions(ctx, name, data)
	case version != load.AnyVersion && code(err) == "NotImplemented":
		return "", d.ignoresConditions(err)
	case unmet(err) || version != load.AnyVersion && noKey(err):
		return d.wrote(ctx, name, in)
	}
	return "", d.fail(ctx, "write", name, err)
}

// checkConditions checks, after the store wrote an object, that it honours conditions. It asks
// for two more writes of the same object whose conditions do not hold: that there is no
// object, and that it has another version. AWS is not asked, and any other store once.
func (d *Destination) checkConditions(ctx context.Context, name string, data []byte) error {
	if !d.custom || d.honours.Load() {
		return nil
	}
	for _, unmeant := range []awss3.PutObjectInput{{IfNoneMatch: aws.String("*")}, {IfMatch: aws.String(`"00000000000000000000000000000000"`)}} {
		in := d.putInput(name, data, rand.Text())
		in.IfNoneMatch, in.IfMatch = unmeant.IfNoneMatch, unmeant.IfMatch
		_, err := d.client.PutObject(ctx, in)
		switch {
		case err == nil || code(err) == "NotImplemented":
			_ = d.remove(ctx, name) // the error that the store cannot be used says more
			return d.ignoresConditions(err)
		case !unmet(err):
			return d.fail(ctx, "write", name, err)
		}
	}
	d.honours.Store(true)
	return nil
}

// ignoresConditions is the error of a store that writes although a condition does not hold. In
// such a store nothing would keep two runs apart.
func (d *Destination) ignoresConditions(err error) error {
	return &load.Error{
		Kind: load.ErrUnusable, Op: "use", Path: d.String(), Remedy: "use a store (or a newer version of it) that supports If-None-Match and If-Match, and check that no proxy drops these headers",
		Err: &load.Refusal{What: "the store ignores the conditions of writes, so two runs could write at the same time", Err: err},
	}
}

// wrote returns the object's new version if the request in wrote the object, otherwise
// ErrConflict. The answer to a first attempt may have been lost, so that the SDK's retry found
// the object already there.
func (d *Destination) wrote(ctx context.Context, name string, in *awss3.PutObjectInput) (string, error) {
	now, err := d.head(ctx, name)
	if err != nil && !noKey(err) {
		return "", d.fail(ctx, "write", name, err)
	}
	if err == nil && now.Metadata[idMetadata] == in.Metadata[idMetadata] {
		return aws.ToString(now.ETag), nil
	}
	return "", fmt.Errorf("cannot write %s: %w", d.path(name), load.ErrConflict)
}

// Delete removes an object. It is no error if the object is missing.
func (d *Destination) Delete(ctx context.Context, name string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	return d.remove(ctx, name)
}

// List returns the objects whose names begin with prefix. Keys that end with a
// slash are left out, because some programs make them as folders.
func (d *Destination) List(ctx context.Context, prefix string) ([]load.Object, error) {
	if err := load.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	return d.list(ctx, prefix, 0)
}

// list returns the objects whose names begin with prefix. If most is not 0, it may stop after
// that many objects.
func (d *Destination) list(ctx context.Context, prefix string, most int32) ([]load.Object, error) {
	in := &awss3.ListObjectsV2Input{Bucket: &d.name, Prefix: d.key(prefix)}
	if most > 0 {
		in.MaxKeys = &most
	}
	var objects []load.Object
	pages := awss3.NewListObjectsV2Paginator(d.client, in)
	for pages.HasMorePages() && (most == 0 || len(objects) < int(most)) {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, d.fail(ctx, "list", prefix, err)
		}
		for _, o := range page.Contents {
			name, ok := strings.CutPrefix(aws.ToString(o.Key), d.prefix)
			if ok && !strings.HasSuffix(name, "/") {
				objects = append(objects, load.Object{Name: name, Bytes: aws.ToInt64(o.Size), Changed: aws.ToTime(o.LastModified)})
			}
		}
	}
	// Directory buckets of S3 do not list in order.
	slices.SortFunc(objects, func(a, b load.Object) int { return strings.Compare(a.Name, b.Name) })
	return objects, nil
}

// checkNoFolder refuses a file if objects lie below its name, as if it were a
// folder. Some stores refuse such a file only after all of it was sent.
func (d *Destination) checkNoFolder(ctx context.Context, file string) error {
	if file == "" {
		return nil
	}
	below, err := d.list(ctx, file+"/", 1)
	if err != nil || len(below) == 0 {
		return err
	}
	return &load.Error{
		Kind: load.ErrUnusable, Op: "create", Path: d.path(file), Remedy: "choose another name, or move the folder away",
		Err: fmt.Errorf("it is a folder: it contains %s", d.path(below[0].Name)),
	}
}
