package definition

import (
	"strings"
	"testing"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "5242880": 5 << 20, "5242880B": 5 << 20, "8192KiB": 8 << 20, "8MiB": 8 << 20, "8 MiB": 8 << 20, "5GiB": 5 << 30,
		"8589934591GiB": 8589934591 << 30, "9223372036854775807": 9223372036854775807,
	} {
		if got, ok := parseSize(text); !ok || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "8 mib", "8MB", "8  MiB", "1.5GiB", "0x10", "8589934592GiB", "9223372036854775808", "1TiB"} {
		if got, ok := parseSize(text); ok {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, seed := range []string{"", "8MiB", "5 GiB", "99999999999999999999GiB", "8589934592GiB", "1B"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := parseSize(text); n < 0 || !ok && n != 0 {
			t.Errorf("%q gives %d, %v", text, n, ok)
		}
	})
}

// A part size may be plain bytes, and tags may be left empty.
func TestS3Settings(t *testing.T) {
	text := strings.Replace(minimal, "path: out.csv", "path: s3://b/out.csv\n    s3: {part_size: 5242880, tags: , sse: s3}", 1)
	d, err := Parse("p.yaml", []byte(text), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	if s := d.Outputs[0].S3; s == nil || s.PartSize != 5<<20 || s.Tags != nil || s.SSE != "s3" {
		t.Errorf("got %+v", s)
	}
}
