package cli

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/s3server"
)

// remove removes an object from the bucket.
func (s store) remove(t *testing.T, key string) {
	t.Helper()
	if _, err := s.client.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(bucket), Key: &key}); err != nil {
		t.Fatal(err)
	}
}

// parts are the keys of the dataset's parts in the bucket, and of those that
// its manifest lists.
func (s store) parts(t *testing.T) (there, listed []string) {
	t.Helper()
	objects := s.objects(t)
	for key := range objects {
		if name := strings.TrimPrefix(key, "lake/form1/"); strings.HasPrefix(name, "dt=") {
			there = append(there, key)
		}
	}
	if m, err := load.DecodeManifest(objects["lake/form1/_manifest.json"]); err == nil {
		for _, p := range m.Parts {
			if _, ok := objects["lake/form1/"+p.Path]; ok {
				listed = append(listed, "lake/form1/"+p.Path)
			}
		}
	}
	return there, listed
}

// TestDamageOnS3: a manifest that is lost and a part that is gone are noticed
// before any request, and the ways out that the error names lead out.
func TestDamageOnS3(t *testing.T) {
	s := startStore(t)
	log, service := newService(testKey, smallForm())
	t.Cleanup(service.Close)
	dir := t.TempDir()
	definition := pipelineFile(t, dir, "feedback", service.URL, "", `forms: [form1]
load:
  - path: s3://forms/lake/{form}/
    format: parquet
    partition: day
    s3: {endpoint: "`+s.URL+`", path_style: true}
`)
	run := func(want int, args ...string) string {
		t.Helper()
		code, stderr := s.formetl(t, dir, s3server.SecretKey, args...)
		if code != want {
			t.Fatalf("%v ends with %d, want %d: %s", args, code, want, stderr)
		}
		return stderr
	}
	whole := func() {
		t.Helper()
		if there, listed := s.parts(t); len(there) == 0 || len(there) != len(listed) {
			t.Fatalf("%d parts lie there, and the manifest lists %d of them", len(there), len(listed))
		}
	}
	run(0, "run", definition)
	whole()
	for _, cure := range [][]string{{"run", definition, "--full"}, {"clean", definition, "--unlisted"}} {
		s.remove(t, "lake/form1/_manifest.json")
		parts, _ := s.parts(t)
		log.Reset()
		stderr := run(exit.CantCreate, "run", definition)
		for _, part := range parts {
			if !strings.Contains(stderr, strings.TrimPrefix(part, "lake/form1/")) {
				t.Errorf("%s is not named: %s", part, stderr)
			}
		}
		if n := len(log.Log()); n != 0 {
			t.Errorf("%d requests were sent before the look", n)
		}
		run(0, cure...)
		run(0, "run", definition)
		whole()
	}
	parts, _ := s.parts(t)
	s.remove(t, parts[0])
	run(0, "run", definition)
	whole()
}
