package definition

import (
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/formetl/formetl/pipelines/internal/strictyaml"
)

// Bounds of what S3 takes (Amazon S3 user guide: multipart upload limits,
// object tags).
const (
	minPartSize      = 5 << 20
	maxPartSize      = 5 << 30
	maxPartsInFlight = 256
	maxTags          = 10
	maxTagKey        = 128 // characters
	maxTagValue      = 256
)

var (
	storageClassShape = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	accountShape      = regexp.MustCompile(`^[0-9]{12}$`)
	tagShape          = regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$`)
	sizeShape         = regexp.MustCompile(`^([0-9]+) ?(B|KiB|MiB|GiB)?$`)
)

// readS3 reads the settings of the S3 destination.
func (r *reader) readS3(out *placedOutput) {
	v := out.s3
	switch {
	case !v.Given():
		return
	case !slices.Contains(r.o.Schemes, "s3"):
		v.Fail("leave s3: out", "this build of formetl has no S3 destination")
		return
	case !strings.HasPrefix(out.Path, "s3://"):
		v.Fail("leave s3: out, or write a path that begins with s3://", "these settings are for s3:// paths")
		return
	}
	var s3 S3
	values := v.Section(
		strictyaml.Optional("endpoint", func(v strictyaml.Value) { s3.Endpoint = readEndpoint(v) }),
		strictyaml.Optional("region", func(v strictyaml.Value) { s3.Region, _ = v.Text() }),
		strictyaml.Optional("path_style", func(v strictyaml.Value) { s3.PathStyle, _ = v.Boolean() }),
		strictyaml.Optional("storage_class", func(v strictyaml.Value) {
			s3.StorageClass = readShaped(v, storageClassShape, "write its name in capitals, such as STANDARD_IA", "a storage class")
		}),
		strictyaml.Optional("tags", func(v strictyaml.Value) { s3.Tags = readTags(v) }),
		strictyaml.Optional("sse", func(v strictyaml.Value) { s3.SSE, _ = v.OneOf("s3", "kms") }),
		strictyaml.Optional("kms_key_id", func(v strictyaml.Value) { s3.KMSKeyID, _ = v.Text() }),
		strictyaml.Optional("expected_bucket_owner", func(v strictyaml.Value) {
			s3.ExpectedBucketOwner = readShaped(v, accountShape, "write the account's id of 12 digits", "an account id")
		}),
		strictyaml.Optional("part_size", func(v strictyaml.Value) { s3.PartSize = readSize(v, minPartSize, maxPartSize) }),
		strictyaml.Optional("parts_in_flight", func(v strictyaml.Value) { s3.PartsInFlight, _ = v.Integer(1, maxPartsInFlight) }),
	)
	if key, given := values["kms_key_id"]; given && s3.SSE != "kms" {
		key.Fail("add sse: kms, or leave kms_key_id out", "a KMS key is used with sse: kms only")
	}
	out.S3 = &s3
}

// readEndpoint reads a URL, which must not hold credentials. A value that is refused
// is not shown.
func readEndpoint(v strictyaml.Value) string {
	v = v.Hidden()
	text, ok := v.Text()
	if !ok {
		return ""
	}
	if !IsEndpoint(text) {
		v.Fail("write an address such as https://s3.example.com or http://127.0.0.1:9000; credentials come from the environment", "this is not the address of an S3 server")
		return ""
	}
	return text
}

// IsEndpoint tells whether text is the address of an S3 server: http or
// https, a host, no credentials, no query.
func IsEndpoint(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// readTags reads the tags of data objects; nil if there are none.
func readTags(v strictyaml.Value) map[string]string {
	entries, ok := v.Entries()
	if !ok || len(entries) == 0 {
		return nil
	}
	if len(entries) > maxTags {
		v.Fail("keep 10 of them", "an object has at most 10 tags")
		return nil
	}
	tags := make(map[string]string, len(entries))
	for _, child := range entries {
		key := child.Key()
		text, ok := child.Scalar()
		_, twice := tags[key]
		switch {
		case !ok:
			child.Fail("write one value, in quotes if it reads true, false or null", "text is expected, not %s", child.Kind())
		case twice:
			child.Fail("keep one of them", "the tag stands here a second time")
		case key == "" || strings.HasPrefix(key, "aws:") || !tagShape.MatchString(key) || utf8.RuneCountInString(key) > maxTagKey,
			!tagShape.MatchString(text) || utf8.RuneCountInString(text) > maxTagValue:
			child.Fail("write letters, digits, blanks and _ . : / = + - @, at most 128 of them as a name and 256 as a value", "S3 does not take this tag")
		default:
			tags[key] = text
		}
	}
	return tags
}

// readShaped reads a text that must match shape. It is "" after a problem.
func readShaped(v strictyaml.Value, shape *regexp.Regexp, remedy, what string) string {
	text, ok := v.Text()
	if ok && !shape.MatchString(text) {
		v.Fail(remedy, "%s is not %s", strictyaml.Quote(text), what)
		return ""
	}
	return text
}

// readSize reads a number of bytes between least and most, such as 8MiB. It is 0
// after a problem.
func readSize(v strictyaml.Value, least, most int64) int64 {
	text, ok := v.Text()
	if !ok {
		return 0
	}
	n, ok := parseSize(text)
	if !ok || n < least || n > most {
		v.Fail("write a size from 5MiB to 5GiB, such as 16MiB", "%s is not a size in the range", strictyaml.Quote(text))
		return 0
	}
	return n
}

// parseSize reads a number of bytes such as 8388608, 8192KiB, 8MiB or 1GiB.
func parseSize(text string) (int64, bool) {
	m := sizeShape.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	shift := map[string]uint{"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[m[2]]
	if err != nil || n > math.MaxInt64>>shift {
		return 0, false
	}
	return n << shift, true
}
