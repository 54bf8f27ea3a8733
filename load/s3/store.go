package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
)

// object is a small object as it was read.
type object struct {
	data    []byte
	version string
	id      string        // formetl-id
	age     time.Duration // by the store's own clock; negative where it does not tell
}

// Get reads an object; its version is the store's ETag.
func (d *Destination) Get(ctx context.Context, name string) ([]byte, string, error) {
	if err := load.CheckName(name); err != nil {
		return nil, "", err
	}
	o, err := d.get(ctx, name)
	return o.data, o.version, err
}

func (d *Destination) get(ctx context.Context, name string) (object, error) {
	if err := d.checkContext(ctx, "read", name); err != nil {
		return object{}, err
	}
	out, err := d.client.GetObject(ctx, &awss3.GetObjectInput{Bucket: &d.bucket, Key: d.key(name), ExpectedBucketOwner: d.owner()})
	if err != nil {
		if noKey(err) {
			return object{}, fmt.Errorf("cannot read %s: %w", d.path(name), load.ErrNotExist)
		}
		return object{}, d.fail(ctx, "read", name, err)
	}
	defer func() { _ = out.Body.Close() }() // read only
	data, err := io.ReadAll(out.Body)
	if err != nil {
		return object{}, d.fail(ctx, "read", name, err)
	}
	o := object{data: data, version: aws.ToString(out.ETag), id: out.Metadata[idMetadata], age: -1}
	if now, ok := awsmiddleware.GetServerTime(out.ResultMetadata); ok && out.LastModified != nil {
		o.age = max(0, now.Sub(*out.LastModified))
	}
	return o, nil
}

// Put writes an object whole; the store does that in one step.
func (d *Destination) Put(ctx context.Context, name string, data []byte, version string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	_, err := d.put(ctx, name, data, version)
	return err
}

// put is Put and gives the new version.
func (d *Destination) put(ctx context.Context, name string, data []byte, version string) (string, error) {
	if err := d.checkContext(ctx, "write", name); err != nil {
		return "", err
	}
	in := d.putInput(name, data, rand.Text())
	guarded := false
	if version != load.AnyVersion {
		c, err := d.conditions(ctx)
		if err != nil {
			return "", err
		}
		guarded = c.put
	}
	switch {
	case version == load.AnyVersion:
	case !guarded:
		return d.putUnguarded(ctx, name, in, version)
	case version == load.NoVersion:
		in.IfNoneMatch = aws.String("*")
	default:
		in.IfMatch = aws.String(version)
	}
	out, err := d.client.PutObject(ctx, in)
	if err == nil {
		return aws.ToString(out.ETag), nil
	}
	if unmet(err) || version != load.AnyVersion && noKey(err) {
		return d.wrote(ctx, name, in)
	}
	return "", d.fail(ctx, "write", name, err)
}

// wrote tells whether the object is the one that was just sent: its answer
// may have been lost, and a retry met it.
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

// putUnguarded is the second best of a store that knows no conditions.
func (d *Destination) putUnguarded(ctx context.Context, name string, in *awss3.PutObjectInput, version string) (string, error) {
	current := load.NoVersion
	o, err := d.get(ctx, name)
	if err == nil {
		current = o.version
	} else if !errors.Is(err, load.ErrNotExist) {
		return "", err
	}
	if current != version {
		return "", fmt.Errorf("cannot write %s: %w", d.path(name), load.ErrConflict)
	}
	if _, err := d.client.PutObject(ctx, in); err != nil {
		return "", d.fail(ctx, "write", name, err)
	}
	return d.wrote(ctx, name, in)
}

// putInput is a PutObject of a small object, marked with an id.
func (d *Destination) putInput(name string, data []byte, id string) *awss3.PutObjectInput {
	in := &awss3.PutObjectInput{
		Bucket: &d.bucket, Key: d.key(name), ExpectedBucketOwner: d.owner(),
		Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))), Metadata: map[string]string{idMetadata: id},
	}
	in.ServerSideEncryption, in.SSEKMSKeyId = d.encryption()
	return in
}

// Delete removes an object; S3 takes a missing one for removed.
func (d *Destination) Delete(ctx context.Context, name string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	if err := d.checkContext(ctx, "remove", name); err != nil {
		return err
	}
	return d.remove(ctx, name)
}

func (d *Destination) remove(ctx context.Context, name string) error {
	_, err := d.client.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: &d.bucket, Key: d.key(name), ExpectedBucketOwner: d.owner()})
	if err != nil && !noKey(err) {
		return d.fail(ctx, "remove", name, err)
	}
	return nil
}
