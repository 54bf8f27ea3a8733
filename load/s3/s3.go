package s3

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
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
