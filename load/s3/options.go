package s3

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/formetl/formetl/load"
)

// Limits of multipart uploads (Amazon S3 user guide, "multipart upload limits"), and the
// defaults of Options.
const (
	MinPartSize          = 5 << 20
	MaxPartSize          = 5 << 30
	MaxParts             = 10_000
	DefaultPartSize      = 8 << 20
	DefaultPartsInFlight = 4
)

// Values of Options.SSE: how objects are encrypted at rest, if not in the way that the bucket
// sets.
const (
	SSES3  = "s3"  // encryption with keys that S3 manages
	SSEKMS = "kms" // encryption with a key of KMS
)

// Options are a destination's settings. The zero value is AWS with the SDK's
// own configuration (environment, profile, web identity, instance role).
type Options struct {
	Endpoint      string       // URL of the server, "" for AWS or what the SDK's configuration names
	Region        string       // the region; "" for the SDK's, or us-east-1 if it has none
	PathStyle     bool         // the bucket stands in the path instead of the host name
	SSE           string       // encryption at rest: "", SSES3 or SSEKMS
	KMSKeyID      string       // key id or ARN for SSEKMS, "" for the account's default key
	PartSize      int64        // bytes of a part, 0 for DefaultPartSize
	PartsInFlight int          // parts of one upload in memory at once, 0 for DefaultPartsInFlight
	Logger        *slog.Logger // receives warnings; nil: nothing is logged
}

// complete checks the options and fills in the defaults.
func (o Options) complete() (Options, error) {
	o.PartSize = cmp.Or(o.PartSize, DefaultPartSize)
	o.PartsInFlight = cmp.Or(o.PartsInFlight, DefaultPartsInFlight)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	switch {
	case o.PartSize < MinPartSize || o.PartSize > MaxPartSize:
		return o, fmt.Errorf("part_size is %d bytes; S3 allows 5 MiB to 5 GiB", o.PartSize)
	case o.PartsInFlight < 1 || o.PartsInFlight > MaxParts:
		return o, fmt.Errorf("parts_in_flight is %d; use 1 to %d", o.PartsInFlight, MaxParts)
	case o.SSE != "" && o.SSE != SSES3 && o.SSE != SSEKMS:
		return o, fmt.Errorf("sse is %q; use s3 or kms", o.SSE)
	case o.KMSKeyID != "" && o.SSE != SSEKMS:
		return o, errors.New("kms_key_id needs sse: kms")
	}
	return o, nil
}

// Scheme begins the addresses of buckets.
const Scheme = "s3"

// parseRoot splits s3://bucket/prefix. The returned prefix is empty or ends with "/".
func parseRoot(root string) (bucket, prefix string, err error) {
	rest, ok := strings.CutPrefix(root, Scheme+"://")
	if !ok {
		return "", "", errors.New("it does not begin with " + Scheme + "://")
	}
	bucket, prefix, _ = strings.Cut(rest, "/")
	prefix = strings.TrimSuffix(prefix, "/")
	if bucket == "" || strings.ContainsAny(bucket, "@:?#%\\ \t\r\n") {
		return "", "", errors.New("the name of the bucket is missing, or has a character that no bucket has")
	}
	if prefix == "" {
		return bucket, "", nil
	}
	if err := load.CheckName(prefix); err != nil {
		return "", "", err
	}
	return bucket, prefix + "/", nil
}
