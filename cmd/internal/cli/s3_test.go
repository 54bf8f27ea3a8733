package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestExportToS3 exports to a real S3 server, and holds what is said where it refuses.
func TestExportToS3(t *testing.T) {
	needs.RequireS3(t)
	buckets := t.TempDir()
	server, err := needs.StartS3(t.Context(), needs.Versitygw(), buckets, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	if err := os.Mkdir(filepath.Join(buckets, "forms"), 0o750); err != nil { // a folder is a bucket
		t.Fatal(err)
	}
	_, service := newService(testKey, smallForm())
	t.Cleanup(service.Close)
	dir := t.TempDir()
	export := func(secret string, flags ...string) (code int, stderr string) {
		t.Helper()
		p := command(t, dir, testKey, slices.Concat([]string{"export", "--form", "form1"}, serviceArgs(service.URL), flags)...)
		p.Env = append(p.Env, "AWS_ACCESS_KEY_ID="+needs.S3AccessKey, "AWS_SECRET_ACCESS_KEY="+secret, "AWS_SESSION_TOKEN=",
			"AWS_EC2_METADATA_DISABLED=true", "AWS_REGION=", "AWS_PROFILE=", "AWS_CONFIG_FILE="+filepath.Join(dir, "none"),
			"AWS_SHARED_CREDENTIALS_FILE="+filepath.Join(dir, "none"), "AWS_ENDPOINT_URL=", "AWS_ENDPOINT_URL_S3="+server.URL)
		code = p.code(t, p.Run())
		if told := p.stderr.String() + p.stdout.String(); strings.Contains(told, secret) || strings.Contains(told, testKey) {
			t.Errorf("%v shows a secret: %s", flags, told)
		}
		return code, p.stderr.String()
	}
	to := []string{"-o", "s3://forms/a/form1.csv", "--s3-endpoint", server.URL, "--s3-path-style", "--codebook", "--manifest"}
	for _, flags := range [][]string{{"-o", "local.csv"}, to, to} { // the last one replaces what the one before wrote
		if code, stderr := export(needs.S3SecretKey, flags...); code != 0 {
			t.Fatalf("%v: %d: %s", flags, code, stderr)
		}
	}
	read := func(file string) []byte {
		data, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			t.Error(err)
		}
		return data
	}
	if got, want := read(filepath.Join(buckets, "forms/a/form1.csv")), read(filepath.Join(dir, "local.csv")); !bytes.Equal(got, want) {
		t.Errorf("the object holds %.200q, the file %.200q", got, want)
	}
	if m, err := load.DecodeManifest(read(filepath.Join(buckets, "forms/a/form1.csv.manifest.json"))); err != nil || len(m.Parts) != 1 {
		t.Errorf("the manifest: %v", err)
	}
	for _, c := range []struct {
		secret, flags string
		code          int
		says          []string
	}{
		{"wrong-secret", "-o s3://forms/x.csv", console.ExitIO, []string{"s3://forms/", "does not match the access key", "AWS_SECRET_ACCESS_KEY"}},
		{needs.S3SecretKey, "-o s3://nowhere/x.csv", console.ExitCantCreate, []string{"s3://nowhere/", "the bucket does not exist", "create the bucket"}},
		{needs.S3SecretKey, "-o s3://forms/x.csv --s3-region eu-central-9", console.ExitCantCreate, []string{"another region"}},
	} {
		code, stderr := export(c.secret, strings.Fields(c.flags)...)
		if code != c.code || slices.ContainsFunc(c.says, func(say string) bool { return !strings.Contains(stderr, say) }) {
			t.Errorf("%s ends with %d, want %d and %q: %s", c.flags, code, c.code, c.says, stderr)
		}
	}
}
