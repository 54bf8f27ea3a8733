package definition

import (
	"errors"
	"fmt"
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

// readS3 reads the settings of S3 for a path. It returns nil if there are none.
func (r *reader) readS3(v strictyaml.Value, path string) *S3 {
	switch {
	case !v.Given():
		return nil
	case !slices.Contains(r.o.Schemes, "s3"):
		v.Fail("leave s3: out", "this build of formetl has no S3 destination")
		return nil
	case !OnS3(path):
		v.Fail("leave s3: out, or write a path that begins with s3://", "these settings are for s3:// paths")
		return nil
	}
	s3 := &S3{}
	values := v.Section(
		strictyaml.Optional("endpoint", func(v strictyaml.Value) {
			// An address that is refused is not shown, because it may hold credentials.
			strictyaml.Parsed(&s3.Endpoint, parseEndpoint, endpointRemedy)(v.Hidden())
		}),
		strictyaml.Optional("region", strictyaml.Text(&s3.Region)),
		strictyaml.Optional("path_style", strictyaml.Boolean(&s3.PathStyle)),
		strictyaml.Optional("storage_class", strictyaml.Parsed(&s3.StorageClass,
			shaped(storageClassShape, "a storage class; write its name in capitals, such as STANDARD_IA"), "")),
		strictyaml.Optional("tags", func(v strictyaml.Value) { s3.Tags = readTags(v) }),
		strictyaml.Optional("sse", strictyaml.OneOf(&s3.SSE, "s3", "kms")),
		strictyaml.Optional("kms_key_id", strictyaml.Text(&s3.KMSKeyID)),
		strictyaml.Optional("expected_bucket_owner", strictyaml.Parsed(&s3.ExpectedBucketOwner,
			shaped(accountShape, "an account id; write the account's id of 12 digits"), "")),
		strictyaml.Optional("part_size", strictyaml.Parsed(&s3.PartSize, parsePartSize, "")),
		strictyaml.Optional("parts_in_flight", strictyaml.Integer(&s3.PartsInFlight, 1, maxPartsInFlight)),
	)
	if key, given := values["kms_key_id"]; given && s3.SSE != "kms" {
		key.Fail("add sse: kms, or leave kms_key_id out", "a KMS key is used with sse: kms only")
	}
	return s3
}

const endpointRemedy = "write an address such as https://s3.example.com or http://127.0.0.1:9000; credentials come from the environment"

func parseEndpoint(text string) (string, error) {
	if !IsEndpoint(text) {
		return "", errors.New("this is not the address of an S3 server")
	}
	return text, nil
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

// shaped makes a parser of texts that match shape. what continues "… is not" and
// ends with a remedy.
func shaped(shape *regexp.Regexp, what string) func(text string) (string, error) {
	return func(text string) (string, error) {
		if !shape.MatchString(text) {
			return "", fmt.Errorf("%s is not %s", strictyaml.Quote(text), what)
		}
		return text, nil
	}
}

func parsePartSize(text string) (int64, error) {
	n, ok := parseSize(text)
	if !ok || n < minPartSize || n > maxPartSize {
		return 0, fmt.Errorf("%s is not a size in the range; write a size from 5MiB to 5GiB, such as 16MiB", strictyaml.Quote(text))
	}
	return n, nil
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
