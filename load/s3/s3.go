package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/lease"
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

const (
	defaultRegion = "us-east-1" // region for endpoints that have no regions
	// attempts is how often the SDK sends one request, unless
	// AWS_MAX_ATTEMPTS or the profile says otherwise.
	attempts = 5
	// answerTimeout is how long a server may take to answer after it has the
	// whole request. completeTimeout is for the completion of an upload,
	// because some stores copy all its parts.
	answerTimeout   = 45 * time.Second
	completeTimeout = 3 * time.Minute
	// cleanupTimeout is how long one cleaning step may go on after a run was stopped. The run's
	// process ends soon, whatever is left to clean.
	cleanupTimeout = 2 * time.Second
	// A connection may accept no bytes for stallTimeout. It may be silent in
	// both directions for readTimeout, which is longer than answerTimeout.
	stallTimeout = time.Minute
	readTimeout  = answerTimeout + 30*time.Second
	idleConns    = 64
)

// Destination is a prefix of a bucket. Its methods are safe for concurrent use,
// also by several Destinations and several processes.
type Destination struct {
	client   *awss3.Client
	patient  awss3.HTTPClient // waits longer, to complete uploads; nil if the configuration sets a client
	options  Options
	name     string
	prefix   string // prefix of the keys of objects, "" or ends with "/"
	custom   bool   // the endpoint is not AWS
	times    lease.Times
	maxParts int
	honours  atomic.Bool // the store was seen to honour the conditions of writes
	untold   sync.Once   // makes one log message say that the store does not support Check
}

var _ load.Destination = (*Destination)(nil)

// New returns the destination at root, s3://bucket or s3://bucket/prefix. It
// looks up credentials, so that missing ones are an error at once. It sends no
// request to the bucket.
func New(ctx context.Context, root string, o Options) (*Destination, error) {
	return newDestination(ctx, root, o, stallGuard{write: stallTimeout, read: readTimeout})
}

func newDestination(ctx context.Context, root string, o Options, guard stallGuard) (*Destination, error) {
	name, prefix, err := parseRoot(root)
	if err != nil {
		return nil, &load.Error{Kind: load.ErrUnusable, Op: "use", Path: root, Remedy: "write s3://bucket/path", Err: err}
	}
	if o, err = o.complete(); err != nil {
		return nil, &load.Error{Kind: load.ErrUnusable, Op: "use", Path: root, Remedy: "correct the output's s3: settings", Err: err}
	}
	d := &Destination{options: o, name: name, prefix: prefix, times: lease.DefaultTimes(), maxParts: MaxParts}
	cfg, err := loadConfig(ctx, o)
	if err != nil {
		return nil, &load.Error{Kind: load.ErrUnusable, Op: "use", Path: root, Remedy: "correct the AWS configuration (AWS_* variables, ~/.aws/config)", Err: err}
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("cannot use %s: %w", root, context.Cause(ctx))
		}
		return nil, &load.Error{
			Kind: load.ErrFailed, Op: "use", Path: root, Remedy: credentialsHint,
			Err: &load.Refusal{What: "no S3 credentials were found", Err: err},
		}
	}
	d.client = awss3.NewFromConfig(cfg, func(client *awss3.Options) { d.configure(client, guard) })
	if d.client.Options().Region == "" {
		return nil, &load.Error{
			Kind: load.ErrUnusable, Op: "use", Path: root, Remedy: "set region: in the output's s3: settings, or AWS_REGION",
			Err: &load.Refusal{What: "the region is not set"},
		}
	}
	return d, nil
}

// sdkLogger returns a logger for the SDK's own messages, which would go to standard error
// otherwise. Those are for programmers, and an error says what they warn of.
func sdkLogger(log *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(_ logging.Classification, format string, v ...any) {
		log.Log(context.Background(), slog.LevelDebug, fmt.Sprintf(format, v...), slog.String("component", "aws-sdk"))
	})
}

// loadConfig reads the SDK's configuration from the environment and then the
// profile.
func loadConfig(ctx context.Context, o Options) (aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = idleConns
		t.ResponseHeaderTimeout = answerTimeout
	})
	return config.LoadDefaultConfig(ctx, config.WithHTTPClient(client), config.WithLogger(sdkLogger(o.Logger)),
		config.WithRegion(o.Region), config.WithBaseEndpoint(o.Endpoint)) // empty ones change nothing
}
