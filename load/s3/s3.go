package s3

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/logging"

	"github.com/formetl/formetl/load"
)

const (
	defaultRegion = "us-east-1" // of endpoints that know no regions
	// attempts is how often the SDK sends one request, unless
	// AWS_MAX_ATTEMPTS or the profile says otherwise.
	attempts = 5
	// answerTimeout is how long a server may think about a whole request before
	// it answers, and completeTimeout how long it may take to complete a large
	// upload, for which some stores copy its parts.
	answerTimeout   = 45 * time.Second
	completeTimeout = 3 * time.Minute
	// cleanupTimeout bounds what is done after a run was stopped: it has 10 s.
	cleanupTimeout = 2 * time.Second
	// stallTimeout is how long a connection may take nothing of what is sent,
	// and readTimeout how long it may be silent in both directions: longer than
	// a server may think.
	stallTimeout = time.Minute
	readTimeout  = answerTimeout + 30*time.Second
	idleConns    = 64
)

// Destination is a prefix of a bucket. Its methods may be called side by
// side, from several Destinations and from several processes.
type Destination struct {
	client   *awss3.Client
	options  Options
	bucket   string
	prefix   string // "" or ends with "/"
	custom   bool   // not AWS
	guard    stallGuard
	patient  awss3.HTTPClient // completes uploads; nil where the configuration has a client of its own
	maxParts int
	leasing  leaseTimes

	// ended holds the ids of uploads that this Destination completed or
	// aborted: nobody else can still be at them.
	ended sync.Map

	// What a store does not tell is said once.
	noParts, noUploads sync.Once

	probing  sync.Mutex
	honoured *conditions // nil before the probe
}

var (
	_ load.Destination = (*Destination)(nil)
	_ load.Leaser      = (*Destination)(nil)
	_ load.Limiter     = (*Destination)(nil)
)

// New returns the destination at root, s3://bucket or s3://bucket/prefix.
// Credentials are looked up now, so that a machine without them is told at
// once; the bucket is not asked for anything yet.
func New(ctx context.Context, root string, o Options) (*Destination, error) {
	return newDestination(ctx, root, o, stallGuard{write: stallTimeout, read: readTimeout})
}

func newDestination(ctx context.Context, root string, o Options, guard stallGuard) (*Destination, error) {
	bucket, prefix, err := parseRoot(root)
	if err != nil {
		return nil, &load.CreateError{Op: "use", Path: root, Hint: "write s3://bucket/path", Err: err}
	}
	if o, err = o.complete(); err != nil {
		return nil, &load.CreateError{Op: "use", Path: root, Hint: "correct the output's s3: settings", Err: err}
	}
	d := &Destination{options: o, bucket: bucket, prefix: prefix, guard: guard, maxParts: MaxParts, leasing: defaultLeaseTimes()}
	cfg, err := loadConfig(ctx, o)
	if err != nil {
		return nil, &load.CreateError{Op: "use", Path: root, Hint: "correct the AWS configuration (AWS_* variables, ~/.aws/config)", Err: err}
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("cannot use %s: %w", root, context.Cause(ctx))
		}
		return nil, &load.IOError{
			Op: "use", Path: root, Hint: credentialsHint,
			Err: &Refusal{Reason: Credentials, What: "no S3 credentials were found", Err: err},
		}
	}
	d.client = awss3.NewFromConfig(cfg, d.configure)
	if d.client.Options().Region == "" {
		return nil, &load.CreateError{
			Op: "use", Path: root, Hint: "set region: in the output's s3: settings, or AWS_REGION",
			Err: &Refusal{Reason: WrongRegion, What: "no region is known"},
		}
	}
	return d, nil
}

// sdkLogger takes the SDK's own messages, which it would write to standard
// error as they are.
func sdkLogger(log *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(c logging.Classification, format string, v ...any) {
		level := slog.LevelDebug
		if c == logging.Warn {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, fmt.Sprintf(format, v...), slog.String("component", "aws-sdk"))
	})
}

// loadConfig reads the SDK's configuration: environment, then profile.
func loadConfig(ctx context.Context, o Options) (aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = idleConns
		t.ResponseHeaderTimeout = answerTimeout
	})
	settings := []func(*config.LoadOptions) error{config.WithHTTPClient(client), config.WithLogger(sdkLogger(o.Logger))}
	if o.Region != "" {
		settings = append(settings, config.WithRegion(o.Region))
	}
	if o.Endpoint != "" {
		settings = append(settings, config.WithBaseEndpoint(o.Endpoint))
	}
	return config.LoadDefaultConfig(ctx, settings...)
}

// configure sets what differs from the SDK's defaults. Endpoints that are not
// AWS's get checksums only where the protocol requires them, as many do not
// know the newer ones.
func (d *Destination) configure(o *awss3.Options) {
	if d.options.Endpoint != "" {
		o.BaseEndpoint = &d.options.Endpoint // the definition stands over AWS_ENDPOINT_URL_S3
	}
	if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
		// Here and not in loadConfig: the SDK has put a dialer of its own since.
		o.HTTPClient = client.WithTransportOptions(func(t *http.Transport) { t.DialContext = d.guard.wrap(t.DialContext) })
		d.patient = client.WithTransportOptions(func(t *http.Transport) {
			guard := stallGuard{write: d.guard.write, read: d.guard.read + completeTimeout - answerTimeout}
			t.DialContext, t.ResponseHeaderTimeout = guard.wrap(t.DialContext), completeTimeout
		})
	}
	o.DisableLogOutputChecksumValidationSkipped = true // it says so for every object without one
	o.UsePathStyle = d.options.PathStyle
	if d.custom = o.BaseEndpoint != nil; d.custom {
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.UsePathStyle = o.UsePathStyle || loopback(*o.BaseEndpoint)
		if o.Region == "" {
			o.Region = defaultRegion
		}
	}
	if o.RetryMaxAttempts == 0 {
		o.RetryMaxAttempts = attempts
	}
	o.Retryer = retry.AddWithErrorCodes(retry.NewStandard(func(s *retry.StandardOptions) {
		s.MaxAttempts = o.RetryMaxAttempts
	}), conflictCode)
}

// loopback tells whether an endpoint is on this machine, where no bucket has
// a host name of its own.
func loopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// MaxObjectBytes is what an upload can hold, less a part: the caller stops
// before it is full.
func (d *Destination) MaxObjectBytes() int64 {
	return int64(d.maxParts-1) * d.options.PartSize
}

// String returns the destination's address, for messages.
func (d *Destination) String() string { return "s3://" + d.bucket + "/" + d.prefix }

// path gives an object's address, for messages.
func (d *Destination) path(name string) string { return d.String() + name }

func (d *Destination) key(name string) *string { return aws.String(d.prefix + name) }

// owner is the account that the bucket must belong to, nil for any.
func (d *Destination) owner() *string {
	if d.options.ExpectedBucketOwner == "" {
		return nil
	}
	return &d.options.ExpectedBucketOwner
}

// encryption gives the settings of encryption at rest.
func (d *Destination) encryption() (types.ServerSideEncryption, *string) {
	switch {
	case d.options.SSE == SSES3:
		return types.ServerSideEncryptionAes256, nil
	case d.options.SSE == SSEKMS && d.options.KMSKeyID != "":
		return types.ServerSideEncryptionAwsKms, &d.options.KMSKeyID
	case d.options.SSE == SSEKMS:
		return types.ServerSideEncryptionAwsKms, nil
	}
	return "", nil
}

// checksum is the checksum of an upload's parts, "" for none. An upload must be
// begun with the one that its parts have: the SDK gives parts a CRC32 by
// default, and the upload none.
func (d *Destination) checksum() types.ChecksumAlgorithm {
	if d.client.Options().RequestChecksumCalculation == aws.RequestChecksumCalculationWhenSupported {
		return types.ChecksumAlgorithmCrc32
	}
	return ""
}

// checkContext gives a cancelled context's error before anything is begun.
func (d *Destination) checkContext(ctx context.Context, op, name string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("cannot %s %s: %w", op, d.path(name), context.Cause(ctx))
	}
	return nil
}

// cleanup is a context for what follows a run that was stopped: under one that
// was cancelled there are still 2 s. A deadline is kept, also one that has
// passed: who sets it bounds all that he cleans up, not each piece.
func cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	until := time.Now().Add(cleanupTimeout)
	deadline, bounded := ctx.Deadline()
	if bounded && deadline.Before(until) && !errors.Is(ctx.Err(), context.Canceled) {
		until = deadline
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

// hostname is this machine's name, "" where it has none.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
