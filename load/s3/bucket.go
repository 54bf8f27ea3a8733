package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/formetl/formetl/load"
)

// bucket is a prefix of a bucket: its address, the client that reaches it, and
// the explanation of its errors. Names are relative to the prefix.
type bucket struct {
	client  *awss3.Client
	patient awss3.HTTPClient // waits longer, to complete uploads; nil if the configuration sets a client
	options Options
	name    string
	prefix  string // "" or ends with "/"
	custom  bool   // not AWS
	clock   clock
}

// configure sets what differs from the SDK's defaults. Endpoints other than
// AWS's get checksums only where the protocol requires them, because many do
// not know the newer checksums.
func (b *bucket) configure(o *awss3.Options, guard stallGuard) {
	if b.options.Endpoint != "" {
		o.BaseEndpoint = &b.options.Endpoint // the definition overrides AWS_ENDPOINT_URL_S3
	}
	if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
		// This must not be done in loadConfig, because the SDK sets its own
		// dialer after that.
		o.HTTPClient = client.WithTransportOptions(func(t *http.Transport) { t.DialContext = guard.wrap(t.DialContext) })
		b.patient = client.WithTransportOptions(func(t *http.Transport) {
			slow := stallGuard{write: guard.write, read: guard.read + completeTimeout - answerTimeout}
			t.DialContext, t.ResponseHeaderTimeout = slow.wrap(t.DialContext), completeTimeout
		})
	}
	o.HTTPClient = dated{o.HTTPClient, &b.clock}
	o.DisableLogOutputChecksumValidationSkipped = true // otherwise it logs each object without a checksum
	o.UsePathStyle = b.options.PathStyle
	if b.custom = o.BaseEndpoint != nil; b.custom {
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

// clock is what the dates of answers tell of the store's clock.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
	known  bool
}

// note notes the date of an answer to a request that was sent at a time. Dates are cut to whole
// seconds, and the answer may have been on its way for long. So the offset lies between what it
// is now and what it was then, and the greatest of the former is the nearest. If even the latter
// is less than what was known, a clock was set.
func (c *clock) note(date string, sent, now time.Time) {
	at, err := http.ParseTime(date)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	least, most := at.Sub(now), at.Add(time.Second).Sub(sent)
	if !c.known || least > c.offset || most < c.offset {
		c.offset, c.known = least, true
	}
}

// Offset implements load.Clocked.
func (b *bucket) Offset() time.Duration {
	b.clock.mu.Lock()
	defer b.clock.mu.Unlock()
	return b.clock.offset
}

// dated is a client that notes the dates of answers.
type dated struct {
	awss3.HTTPClient
	clock *clock
}

// Do sends a request.
func (d dated) Do(r *http.Request) (*http.Response, error) {
	sent := time.Now()
	answer, err := d.HTTPClient.Do(r)
	if err == nil {
		d.clock.note(answer.Header.Get("Date"), sent, time.Now())
	}
	return answer, err
}

// loopback tells whether an endpoint is on this machine. There a bucket has no
// host name of its own, so it must stand in the path.
func loopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// String returns the destination's address, for messages.
func (b *bucket) String() string { return Scheme + "://" + b.name + "/" + b.prefix }

// path is an object's address, for messages.
func (b *bucket) path(name string) string { return b.String() + name }

func (b *bucket) key(name string) *string { return aws.String(b.prefix + name) }

// optional returns a pointer to the text, or nil for "", as the SDK wants it.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// encryption returns the kind of encryption at rest, and the id of the KMS key,
// nil for none.
func (b *bucket) encryption() (types.ServerSideEncryption, *string) {
	kinds := map[string]types.ServerSideEncryption{SSES3: types.ServerSideEncryptionAes256, SSEKMS: types.ServerSideEncryptionAwsKms}
	return kinds[b.options.SSE], optional(b.options.KMSKeyID)
}

// checksum returns the checksum algorithm of an upload's parts, "" for none.
// The upload must be created with the same one: by default the SDK sets CRC32
// for parts and none for the upload.
func (b *bucket) checksum() types.ChecksumAlgorithm {
	if b.client.Options().RequestChecksumCalculation == aws.RequestChecksumCalculationWhenSupported {
		return types.ChecksumAlgorithmCrc32
	}
	return ""
}

// checkContext returns an error if the context is cancelled. Operations that
// send a request at once need no call, because their request fails.
func (b *bucket) checkContext(ctx context.Context, op, name string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("cannot %s %s: %w", op, b.path(name), context.Cause(ctx))
	}
	return nil
}

// cleanup returns a context for cleaning up after a run was stopped. It lasts two
// seconds even if ctx is cancelled. An earlier deadline of ctx stays, even one that
// has passed, because callers use it to bound the cleaning of many objects.
func cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	until := time.Now().Add(cleanupTimeout)
	deadline, bounded := ctx.Deadline()
	if bounded && deadline.Before(until) && !errors.Is(ctx.Err(), context.Canceled) {
		until = deadline
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

// object is a small object that was read.
type object struct {
	data    []byte
	version string
	id      string        // value of the metadata key formetl-id
	age     time.Duration // by the store's own clock; negative if unknown
}

func (b *bucket) get(ctx context.Context, name string) (object, error) {
	out, err := b.answer(ctx, name)
	if err != nil {
		return object{}, err
	}
	defer func() { _ = out.Body.Close() }() // read only
	data, err := io.ReadAll(out.Body)
	if err != nil {
		return object{}, b.fail(ctx, "read", name, err)
	}
	o := object{data: data, version: aws.ToString(out.ETag), id: out.Metadata[idMetadata], age: -1}
	if now, ok := awsmiddleware.GetServerTime(out.ResultMetadata); ok && out.LastModified != nil {
		o.age = max(0, now.Sub(*out.LastModified))
	}
	return o, nil
}

func (b *bucket) head(ctx context.Context, name string) (*awss3.HeadObjectOutput, error) {
	return b.client.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: &b.name, Key: b.key(name)})
}

// Open implements load.Opener by the body of an answer.
func (b *bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := load.CheckName(name); err != nil {
		return nil, err
	}
	out, err := b.answer(ctx, name)
	if err != nil {
		return nil, err
	}
	return out.Body, nil
}

// answer begins to read an object. The caller closes its body.
func (b *bucket) answer(ctx context.Context, name string) (*awss3.GetObjectOutput, error) {
	out, err := b.client.GetObject(ctx, &awss3.GetObjectInput{Bucket: &b.name, Key: b.key(name)})
	switch {
	case noKey(err):
		return nil, fmt.Errorf("cannot read %s: %w", b.path(name), load.ErrNotExist)
	case err != nil:
		return nil, b.fail(ctx, "read", name, err)
	}
	return out, nil
}

// Marked implements load.Marker by the id in an object's metadata.
func (b *bucket) Marked(ctx context.Context, name string) (bool, error) {
	out, err := b.head(ctx, name)
	switch {
	case noKey(err):
		return false, fmt.Errorf("%s: %w", b.path(name), load.ErrNotExist)
	case err != nil:
		return false, b.fail(ctx, "look at", name, err)
	}
	return out.Metadata[idMetadata] != "", nil
}

// putInput returns the request that writes a small object with an id in its
// metadata.
func (b *bucket) putInput(name string, data []byte, id string) *awss3.PutObjectInput {
	in := &awss3.PutObjectInput{
		Bucket: &b.name, Key: b.key(name),
		Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))), Metadata: map[string]string{idMetadata: id},
	}
	in.ServerSideEncryption, in.SSEKMSKeyId = b.encryption()
	return in
}

func (b *bucket) remove(ctx context.Context, name string) error {
	_, err := b.client.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: &b.name, Key: b.key(name)})
	if err != nil && !noKey(err) {
		return b.fail(ctx, "remove", name, err)
	}
	return nil
}
