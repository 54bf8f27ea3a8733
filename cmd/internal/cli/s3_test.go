package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/servers"
)

const bucket = "forms"

// store is a real S3 server with a bucket.
type store struct {
	*servers.S3
	client *awss3.Client
}

// startStore starts the server, and ends a test that cannot have one.
func startStore(t *testing.T) store {
	t.Helper()
	servers.NeedS3(t)
	server, err := servers.StartS3(t.Context(), servers.Versitygw(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	client := awss3.New(awss3.Options{
		BaseEndpoint: &server.URL, UsePathStyle: true, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(servers.S3AccessKey, servers.S3SecretKey, ""),
	})
	if _, err := client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		t.Fatal(err)
	}
	return store{server, client}
}

// objects gives what lies in the bucket, and fails for unfinished uploads.
func (s store) objects(t *testing.T) map[string][]byte {
	t.Helper()
	ctx := context.Background()
	list, err := s.client.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{Bucket: aws.String(bucket)})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, o := range list.Contents {
		got, err := s.client.GetObject(ctx, &awss3.GetObjectInput{Bucket: aws.String(bucket), Key: o.Key})
		if err != nil {
			t.Fatal(err)
		}
		var data bytes.Buffer
		_, err = data.ReadFrom(got.Body)
		_ = got.Body.Close() // read only
		if err != nil {
			t.Fatal(err)
		}
		found[*o.Key] = data.Bytes()
	}
	uploads, err := s.client.ListMultipartUploads(ctx, &awss3.ListMultipartUploadsInput{Bucket: aws.String(bucket)})
	if err != nil || len(uploads.Uploads) != 0 {
		t.Errorf("%d uploads are unfinished, %v", len(uploads.Uploads), err)
	}
	return found
}

// formetl runs a command with S3 credentials and gives its exit code and what
// it wrote to standard error.
func (s store) formetl(t *testing.T, dir, secret string, args ...string) (code int, stderr string) {
	t.Helper()
	code, _, stderr = s.output(t, dir, secret, args...)
	return code, stderr
}

// output is formetl, with what it wrote to standard output too.
func (s store) output(t *testing.T, dir, secret string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := command(t, dir, testKey, args...)
	p.Env = append(p.Env, "AWS_ACCESS_KEY_ID="+servers.S3AccessKey, "AWS_SECRET_ACCESS_KEY="+secret, "AWS_SESSION_TOKEN=",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_REGION=", "AWS_PROFILE=", "AWS_CONFIG_FILE="+filepath.Join(dir, "none"),
		"AWS_SHARED_CREDENTIALS_FILE="+filepath.Join(dir, "none"), "AWS_ENDPOINT_URL=", "AWS_ENDPOINT_URL_S3="+s.URL)
	code = p.code(t, p.Run())
	for _, secret := range []string{secret, testKey} {
		if strings.Contains(p.stderr.String()+p.stdout.String(), secret) {
			t.Errorf("%v shows a secret: %s", args, p.stderr.String())
		}
	}
	return code, p.stdout.String(), p.stderr.String()
}

func TestExportToS3(t *testing.T) {
	s := startStore(t)
	_, service := newService(testKey, smallForm())
	t.Cleanup(service.Close)
	dir := t.TempDir()
	export := func(flags ...string) []string {
		return append(append([]string{"export", "--form", "form1"}, serviceArgs(service.URL)...), flags...)
	}
	if code, stderr := s.formetl(t, dir, servers.S3SecretKey, export("-o", "local.csv")...); code != 0 {
		t.Fatalf("%d: %s", code, stderr)
	}
	want, err := os.ReadFile(filepath.Join(dir, "local.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second replaces the first
		if code, stderr := s.formetl(t, dir, servers.S3SecretKey, export("-o", "s3://forms/a/form1.csv", "--s3-endpoint", s.URL, "--s3-path-style", "--codebook", "--manifest")...); code != 0 {
			t.Fatalf("%d: %s", code, stderr)
		}
	}
	objects := s.objects(t)
	if !bytes.Equal(objects["a/form1.csv"], want) {
		t.Errorf("the object holds %.200q, the file %.200q", objects["a/form1.csv"], want)
	}
	if m, err := load.DecodeManifest(objects["a/form1.csv.manifest.json"]); err != nil || len(m.Parts) != 1 {
		t.Errorf("the manifest: %v", err)
	}
	if len(objects) != 4 || len(objects["a/form1.schema.json"]) == 0 || len(objects["a/form1.codebook.csv"]) == 0 {
		t.Errorf("%d objects", len(objects))
	}
	for _, c := range []struct {
		secret, path string
		code         int
		says         []string
	}{
		{"wrong-secret", "s3://forms/x.csv", console.ExitIO, []string{"s3://forms/", "does not fit the access key", "AWS_SECRET_ACCESS_KEY"}},
		{servers.S3SecretKey, "s3://nowhere/x.csv", console.ExitCantCreate, []string{"s3://nowhere/", "no such bucket", "create the bucket"}},
	} {
		code, stderr := s.formetl(t, dir, c.secret, export("-o", c.path)...)
		if code != c.code {
			t.Errorf("%s ends with %d: %s", c.path, code, stderr)
		}
		for _, say := range c.says {
			if !strings.Contains(stderr, say) {
				t.Errorf("%q is not said: %s", say, stderr)
			}
		}
	}
	code, stderr := s.formetl(t, dir, servers.S3SecretKey, export("-o", "s3://forms/x.csv", "--s3-region", "eu-central-9")...)
	if code != console.ExitCantCreate || !strings.Contains(stderr, "another region") {
		t.Errorf("a wrong region ends with %d: %s", code, stderr)
	}
}

func TestDatasetOnS3(t *testing.T) {
	s := startStore(t)
	_, service := newService(testKey, smallForm())
	t.Cleanup(service.Close)
	dir := t.TempDir()
	write(t, dir, "p.yaml", `version: 1
name: feedback
source:
  base_url: `+service.URL+`
  account: acme
  api_key: ${env:FORMETL_API_KEY}
  timezone: America/Chicago
forms: [form1]
load:
  - path: s3://forms/lake/{form}/
    format: parquet
    partition: month
    s3: {endpoint: "`+s.URL+`", path_style: true, part_size: 5MiB, parts_in_flight: 2}
  - path: s3://forms/files/{form}.parquet
`)
	for _, args := range [][]string{{"validate", "p.yaml"}, {"plan", "p.yaml"}, {"run", "p.yaml"}, {"run", "p.yaml"}} {
		if code, stderr := s.formetl(t, dir, servers.S3SecretKey, args...); code != 0 {
			t.Fatalf("%v: %d: %s", args, code, stderr)
		}
	}
	objects := s.objects(t)
	m, err := load.DecodeManifest(objects["lake/form1/_manifest.json"])
	if err != nil {
		t.Fatal(err)
	}
	if mark := strings.TrimSpace(string(objects["lake/form1/_SUCCESS"])); mark != m.RunID {
		t.Errorf("_SUCCESS holds %q, the manifest %q", mark, m.RunID)
	}
	listed := map[string]bool{"lake/form1/_manifest.json": true, "lake/form1/_SUCCESS": true, "files/form1.parquet": true, "files/form1.parquet.manifest.json": true}
	for _, folder := range []string{"lake", "files"} {
		listed[folder+"/form1.schema.json"], listed[folder+"/form1.codebook.csv"] = true, true
	}
	if lake, files := objects["lake/form1.schema.json"], objects["files/form1.schema.json"]; len(lake) == 0 || !bytes.Equal(lake, files) {
		t.Errorf("the codebooks are\n%s\n%s", lake, files)
	}
	rows := int64(0)
	for _, p := range m.Parts {
		name := "lake/form1/" + p.Path
		listed[name], listed["lake/form1/"+load.IDsName(p.IDs)] = true, true
		n, err := rowsIn(name, objects[name])
		if err != nil {
			t.Fatal(err)
		}
		rows += n
	}
	if rows != m.Rows || rows == 0 {
		t.Errorf("%d rows, the manifest has %d", rows, m.Rows)
	}
	for name := range objects {
		if !listed[name] {
			t.Errorf("%s is left over", name)
		}
	}
	const one = "files/form1.parquet"
	if n, err := rowsIn(one, objects[one]); err != nil || n != rows {
		t.Errorf("the single file has %d rows, %v", n, err)
	}
}
