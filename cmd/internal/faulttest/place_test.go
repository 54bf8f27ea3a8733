package faulttest

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load/loadtest/s3server"
)

// place is where a run writes to, looked at directly: past formetl and past
// every fault.
type place interface {
	// path is what a definition calls it: a dataset's, ending with a slash.
	path() string
	// objects are all that lies there, under names relative to it.
	objects(t testing.TB) map[string][]byte
	// uploads are the ids of the uploads that are not completed.
	uploads(t testing.TB) []string
}

// folder is a place on disk.
type folder struct{ root string }

func (f folder) path() string                { return f.root + "/" }
func (f folder) uploads(testing.TB) []string { return nil }

func (f folder) objects(t testing.TB) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(f.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(f.root, path)
		if err != nil {
			return err
		}
		found[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return found
}

// bucket is a place in a bucket of the server, below a prefix.
type bucket struct {
	name   string
	client *awss3.Client
}

const prefix = "lake/"

// client speaks to a server as its owner.
func client(url string) *awss3.Client {
	return awss3.New(awss3.Options{
		BaseEndpoint: &url, UsePathStyle: true, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(s3server.AccessKey, s3server.SecretKey, ""),
	})
}

// newBucket makes a bucket for one test.
func newBucket(t testing.TB) bucket {
	t.Helper()
	b := bucket{name: "test-" + strings.ToLower(rand.Text()), client: client(server.URL)}
	if _, err := b.client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: &b.name}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b bucket) path() string { return "s3://" + b.name + "/" + prefix }

func (b bucket) objects(t testing.TB) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for _, name := range b.names(t) {
		found[name] = b.object(t, name)
	}
	return found
}

// names are those of the objects that lie there.
func (b bucket) names(t testing.TB) []string {
	t.Helper()
	var names []string
	pages := awss3.NewListObjectsV2Paginator(b.client, &awss3.ListObjectsV2Input{Bucket: &b.name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Contents {
			if strings.HasPrefix(*o.Key, strings.TrimSuffix(prefix, "/")+".") {
				continue // the codebook
			}
			name, below := strings.CutPrefix(*o.Key, prefix)
			if !below {
				t.Errorf("%s lies outside of the output's prefix", *o.Key)
			}
			names = append(names, name)
		}
	}
	return names
}

// open begins to read an object.
func (b bucket) open(t testing.TB, name string) io.ReadCloser {
	t.Helper()
	key := prefix + name
	got, err := b.client.GetObject(context.Background(), &awss3.GetObjectInput{Bucket: &b.name, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	return got.Body
}

// object reads an object.
func (b bucket) object(t testing.TB, name string) []byte {
	t.Helper()
	body := b.open(t, name)
	defer func() { _ = body.Close() }() // read only
	data, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// file brings an object to a file of its own.
func (b bucket) file(t testing.TB, name string) string {
	t.Helper()
	body := b.open(t, name)
	defer func() { _ = body.Close() }() // read only
	path := filepath.Join(t.TempDir(), "object")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(f, body)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func (b bucket) uploads(t testing.TB) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(b.begun(t)))
}

// begun are the keys of the uploads that are not completed, by their ids.
func (b bucket) begun(t testing.TB) map[string]string {
	t.Helper()
	keys := map[string]string{}
	pages := awss3.NewListMultipartUploadsPaginator(b.client, &awss3.ListMultipartUploadsInput{Bucket: &b.name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range page.Uploads {
			keys[*u.UploadId] = *u.Key
		}
	}
	return keys
}
