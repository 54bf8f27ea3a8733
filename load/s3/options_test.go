package s3

import (
	"errors"
	"strings"
	"testing"

	"github.com/formetl/formetl/load/loadtest"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/formetl/formetl/load"
)

func TestParseRoot(t *testing.T) {
	for root, want := range map[string][2]string{
		"s3://b": {"b", ""}, "s3://b/": {"b", ""}, "s3://b/lake": {"b", "lake/"}, "s3://b/lake/": {"b", "lake/"},
		"s3://my.bucket-1/a/b c/ü/": {"my.bucket-1", "a/b c/ü/"},
	} {
		bucket, prefix, err := parseRoot(root)
		if err != nil || bucket != want[0] || prefix != want[1] {
			t.Errorf("%s: got %q, %q, %v", root, bucket, prefix, err)
		}
	}
	for _, root := range []string{"", "b/lake", "gs://b/x", "s3:/b/x", "s3://", "s3:///x", "s3://b/../x", "s3://b//x", "s3://b/./x", "s3://key:secret@b/x", "s3://b?x", "s3://b/a\x00", "s3://a b/x"} {
		_, err := New(t.Context(), root, Options{})
		if !errors.Is(err, load.ErrUnusable) || !strings.Contains(loadtest.Told(err), "write s3://bucket/path") {
			t.Errorf("%q gives %v", root, err)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"part_size is 1 bytes": {PartSize: 1}, "part_size is 5368709121": {PartSize: MaxPartSize + 1}, "part_size is -1": {PartSize: -1},
		"parts_in_flight is -1": {PartsInFlight: -1}, `sse is "aes"`: {SSE: "aes"},
		"kms_key_id": {KMSKeyID: "k", SSE: SSES3},
	} {
		_, err := New(t.Context(), "s3://b/x", o)
		if !errors.Is(err, load.ErrUnusable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v gives %v, want %q", o, err, want)
		}
	}
}

// Endpoints that are not AWS's are sent checksums only where they must be,
// wherever the endpoint comes from.
func TestCustomEndpoint(t *testing.T) {
	for _, c := range []struct {
		name, option, env string
		custom, pathStyle bool
	}{
		{"AWS", "", "", false, false},
		{"definition", "https://s3.example.com", "", true, false},
		{"environment", "", "http://127.0.0.1:9000", true, true},
		{"this machine by name", "http://localhost:9000", "", true, true},
		{"definition over environment", "https://s3.example.com", "http://127.0.0.1:9000", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("AWS_ENDPOINT_URL_S3", c.env)
			d, err := New(t.Context(), "s3://b/x", Options{Endpoint: c.option})
			if err != nil {
				t.Fatal(err)
			}
			o := d.client.Options()
			want := c.option
			if want == "" {
				want = c.env
			}
			if d.custom != c.custom || aws.ToString(o.BaseEndpoint) != want || o.UsePathStyle != c.pathStyle {
				t.Errorf("custom %v, endpoint %q, path style %v", d.custom, aws.ToString(o.BaseEndpoint), o.UsePathStyle)
			}
			if reduced := o.RequestChecksumCalculation == aws.RequestChecksumCalculationWhenRequired; reduced != c.custom {
				t.Errorf("checksums when required: %v", reduced)
			}
		})
	}
}
