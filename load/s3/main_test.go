package s3

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

const testBucket = "formetl-test"

// server is a real server that the tests of a scheme share.
type server struct {
	name string
	*needs.S3
}

// The real servers that run, and their certificates. TestMain makes them.
var (
	running      []server
	certificates *needs.Certificates
)

// TestMain starts the real servers: versitygw over HTTP and over TLS, and
// with FORMETL_TEST_MINIO=1 MinIO over both. Where versitygw was not built
// before and not all tests are asked for, those that need it are left out.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "formetl-s3-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = prepareEnvironment(dir)
	}
	if err == nil {
		certificates, err = needs.NewCertificates(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if !needs.S3There() {
		return m.Run()
	}
	defer func() {
		for _, s := range running {
			s.Stop()
		}
	}()
	if err := startServers(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// prepareEnvironment keeps the machine's own AWS configuration out.
func prepareEnvironment(dir string) error {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": needs.S3AccessKey, "AWS_SECRET_ACCESS_KEY": needs.S3SecretKey, "AWS_SESSION_TOKEN": "",
		"AWS_CONFIG_FILE": filepath.Join(dir, "none"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(dir, "none"),
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CA_BUNDLE": filepath.Join(dir, "public.crt"),
		"AWS_REGION": "us-east-1", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "", "AWS_MAX_ATTEMPTS": "",
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

const minioVariable = "FORMETL_TEST_MINIO"

func kinds() []needs.S3Kind {
	if os.Getenv(minioVariable) != "" {
		return []needs.S3Kind{needs.Versitygw(), needs.MinIO()}
	}
	return []needs.S3Kind{needs.Versitygw()}
}

func startServers(dir string) error {
	for _, k := range kinds() {
		for scheme, tls := range map[string]*needs.Certificates{"http": nil, "tls": certificates} {
			name := k.Name + "-" + scheme
			data := filepath.Join(dir, name)
			if err := os.Mkdir(data, 0o750); err != nil {
				return err
			}
			s, err := needs.StartS3(context.Background(), k, data, tls)
			if err != nil {
				return err
			}
			running = append(running, server{name, s})
			if err := makeBucket(s.URL); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func makeBucket(url string) error {
	d, err := New(context.Background(), "s3://"+testBucket, Options{Endpoint: url})
	if err != nil {
		return err
	}
	_, err = d.client.CreateBucket(context.Background(), &awss3.CreateBucketInput{Bucket: &d.name})
	return err
}

// eachServer runs a test on every real server, side by side.
func eachServer(t *testing.T, test func(t *testing.T, s server)) {
	t.Helper()
	needs.RequireS3(t)
	for _, s := range running {
		t.Run(s.name, func(t *testing.T) { test(t, s) })
	}
}

// open gives the destination at a prefix of the server's bucket.
func (s server) open(t testing.TB, prefix string, change ...func(*Options)) *Destination {
	t.Helper()
	o := Options{Endpoint: s.URL}
	for _, c := range change {
		c(&o)
	}
	d, err := New(context.Background(), "s3://"+testBucket+"/"+prefix, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func stage(t testing.TB, d load.Destination, name string, content []byte) load.Prepared {
	t.Helper()
	u, err := d.Stage(t.Context(), "run1", name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = u.Abort() }()
	if _, err := u.Write(content); err != nil {
		t.Fatal(err)
	}
	p, err := u.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}
