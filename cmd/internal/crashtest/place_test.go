package crashtest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// place is where a pipeline writes to, as any reader sees it: nothing here is
// formetl's own code.
type place interface {
	// address is the place as a definition names it, with a slash at the end.
	address() string
	// get reads an object; one that is not there is fs.ErrNotExist.
	get(ctx context.Context, name string) ([]byte, error)
	// names are those of all objects, whatever they begin with.
	names(ctx context.Context) ([]string, error)
	// uploads are the names of unfinished uploads.
	uploads(ctx context.Context) ([]string, error)
}

// disk is a folder.
type disk struct{ dir string }

func (d disk) address() string { return filepath.ToSlash(d.dir) + "/" }

func (d disk) get(_ context.Context, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(d.dir, filepath.FromSlash(name)))
}

// names passes over folders that vanish while it walks, as a glob does.
func (d disk) names(context.Context) ([]string, error) {
	var names []string
	err := filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(d.dir, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	return names, err
}

func (d disk) uploads(context.Context) ([]string, error) { return nil, nil }

// bucket is the bucket that every S3 server of the tests has.
const bucket = "lake"

// prefix is a prefix of the bucket.
type prefix struct {
	client *awss3.Client
	path   string // ends with a slash
}

// newPrefix gives a prefix of a server, and makes the bucket.
func newPrefix(t testing.TB, url, path string) prefix {
	t.Helper()
	client := awss3.New(awss3.Options{
		BaseEndpoint: &url, UsePathStyle: true, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(needs.S3AccessKey, needs.S3SecretKey, ""),
		// These messages would be the same for every small object.
		DisableLogOutputChecksumValidationSkipped: true,
	})
	_, err := client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String(bucket)})
	var mine *types.BucketAlreadyOwnedByYou
	if err != nil && !errors.As(err, &mine) {
		t.Fatal(err)
	}
	return prefix{client, path}
}

func (p prefix) address() string { return "s3://" + bucket + "/" + p.path }

func (p prefix) get(ctx context.Context, name string) ([]byte, error) {
	out, err := p.client.GetObject(ctx, &awss3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(p.path + name)})
	if err != nil {
		var missing *types.NoSuchKey
		if errors.As(err, &missing) {
			return nil, fs.ErrNotExist
		}
		return nil, err
	}
	defer func() { _ = out.Body.Close() }() // read only
	return io.ReadAll(out.Body)
}

func (p prefix) names(ctx context.Context) ([]string, error) {
	var names []string
	pages := awss3.NewListObjectsV2Paginator(p.client, &awss3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: &p.path})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			if !strings.HasSuffix(*o.Key, "/") {
				names = append(names, strings.TrimPrefix(*o.Key, p.path))
			}
		}
	}
	return names, nil
}

func (p prefix) uploads(ctx context.Context) ([]string, error) {
	out, err := p.client.ListMultipartUploads(ctx, &awss3.ListMultipartUploadsInput{Bucket: aws.String(bucket), Prefix: &p.path})
	if err != nil {
		return nil, err
	}
	if aws.ToBool(out.IsTruncated) {
		return nil, errors.New("there are more unfinished uploads than one page lists")
	}
	names := make([]string, 0, len(out.Uploads))
	for _, u := range out.Uploads {
		names = append(names, strings.TrimPrefix(*u.Key, p.path))
	}
	return names, nil
}
