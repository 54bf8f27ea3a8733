package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

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

// put is Put, and returns the new version.
func (s *store) put(ctx context.Context, name string, data []byte, version string) (string, error) {
	if err := s.checkContext(ctx, "write", name); err != nil {
		return "", err
	}
	in := s.putInput(name, data, rand.Text())
	guarded := false
	if version != load.AnyVersion {
		c, err := s.conditions(ctx)
		if err != nil {
			return "", err
		}
		guarded = c.put
	}
	switch {
	case version == load.AnyVersion:
	case !guarded:
		return s.putUnguarded(ctx, name, in, version)
	case version == load.NoVersion:
		in.IfNoneMatch = aws.String("*")
	default:
		in.IfMatch = aws.String(version)
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

// wrote checks whether the object is the one that was just sent. The answer to
// the first attempt may have been lost, so that the SDK's retry met that
// object. It returns the version, or ErrConflict.
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

// putUnguarded is put for a server that ignores conditions: it checks the
// version before the write, and afterwards whose object it is.
func (s *store) putUnguarded(ctx context.Context, name string, in *awss3.PutObjectInput, version string) (string, error) {
	current := load.NoVersion
	o, err := s.get(ctx, name)
	if err == nil {
		current = o.version
	} else if !errors.Is(err, load.ErrNotExist) {
		return "", err
	}
	if current != version {
		return "", fmt.Errorf("cannot write %s: %w", s.path(name), load.ErrConflict)
	}
	if _, err := s.client.PutObject(ctx, in); err != nil {
		return "", s.fail(ctx, "write", name, err)
	}
	return s.wrote(ctx, name, in)
}

// Delete removes an object. It is no error if there is none.
func (s *store) Delete(ctx context.Context, name string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	if err := s.checkContext(ctx, "remove", name); err != nil {
		return err
	}
	return s.remove(ctx, name)
}
