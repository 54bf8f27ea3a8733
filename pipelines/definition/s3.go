package definition

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Bounds of the settings of multipart uploads. S3 takes parts from 5 MiB to 5 GiB (Amazon S3 user
// guide: multipart upload limits).
const (
	minPartSize      = 5 << 20
	maxPartSize      = 5 << 30
	maxPartsInFlight = 256
)

// readS3 reads s3:, the settings of S3 for a path. It returns nil if the path is not on S3, which
// it reports, or if path is "", because reading the path gave a problem.
func readS3(v value, path string) *S3 {
	switch {
	case path == "":
		return nil
	case !OnS3(path):
		v.Fail("leave s3: out, or write a path that begins with s3://", "these settings are for s3:// paths")
		return nil
	}
	s3 := &S3{}
	values := v.Section(
		optional("endpoint", func(v value) {
			// A message never shows an endpoint that is refused: it may hold credentials.
			intoParsed(&s3.Endpoint, parseEndpoint, endpointRemedy)(v.Hidden())
		}),
		optional("region", intoText(&s3.Region)),
		optional("path_style", intoBoolean(&s3.PathStyle)),
		optional("sse", intoOneOf(&s3.SSE, "s3", "kms")),
		optional("kms_key_id", intoText(&s3.KMSKeyID)),
		optional("part_size", intoParsed(&s3.PartSize, parsePartSize, "")),
		optional("parts_in_flight", intoInteger(&s3.PartsInFlight, 1, maxPartsInFlight)),
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

// IsEndpoint tells whether text is a URL that an S3 server can have: http or https, a host, no
// credentials, no query.
func IsEndpoint(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// parsePartSize reads a size such as 16MiB and returns it in bytes.
func parsePartSize(text string) (int64, error) {
	number, inMiB := strings.CutSuffix(text, "MiB")
	n, err := strconv.ParseUint(number, 10, 32)
	if size := int64(n) << 20; inMiB && err == nil && size >= minPartSize && size <= maxPartSize { //nolint:gosec // n has 32 bits, so it fits
		return size, nil
	}
	return 0, fmt.Errorf("%s is not a size from 5MiB to 5120MiB; write one such as 16MiB", Quote(text))
}
