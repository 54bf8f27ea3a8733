package s3

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/formetl/formetl/load"
)

// configure sets the SDK's options that differ from its defaults. Endpoints other than AWS's
// get checksums only where the protocol requires them, because many do not know the newer
// checksums.
func (d *Destination) configure(o *awss3.Options, guard stallGuard) {
	if d.options.Endpoint != "" {
		o.BaseEndpoint = &d.options.Endpoint // the definition overrides AWS_ENDPOINT_URL_S3
	}
	if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
		// The dialer must not be set in loadConfig, because the SDK sets its own dialer after that.
		o.HTTPClient = client.WithTransportOptions(func(t *http.Transport) { t.DialContext = guard.wrap(t.DialContext) })
		d.patient = client.WithTransportOptions(func(t *http.Transport) {
			slow := stallGuard{write: guard.write, read: guard.read + completeTimeout - answerTimeout}
			t.DialContext, t.ResponseHeaderTimeout = slow.wrap(t.DialContext), completeTimeout
		})
	}
	o.DisableLogOutputChecksumValidationSkipped = true // the SDK would log objects without one
	o.UsePathStyle = d.options.PathStyle
	if d.custom = o.BaseEndpoint != nil; d.custom {
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.UsePathStyle = o.UsePathStyle || loopback(*o.BaseEndpoint)
		o.Region = cmp.Or(o.Region, defaultRegion)
	}
	o.RetryMaxAttempts = cmp.Or(o.RetryMaxAttempts, attempts)
	o.Retryer = retry.AddWithErrorCodes(retry.NewStandard(func(s *retry.StandardOptions) {
		s.MaxAttempts = o.RetryMaxAttempts
	}), conflictCode)
}

// loopback tells whether an endpoint is on this machine. There a bucket has no host name of
// its own, so its name must stand in the path.
func loopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// String returns the destination's address, for messages.
func (d *Destination) String() string { return Scheme + "://" + d.name + "/" + d.prefix }

// path returns an object's address, for messages.
func (d *Destination) path(name string) string { return d.String() + name }

func (d *Destination) key(name string) *string { return aws.String(d.prefix + name) }

// optional returns a pointer to the text, or nil if the text is "", as the SDK wants it.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// encryption returns the kind of encryption at rest, and the id of the KMS key,
// nil for none.
func (d *Destination) encryption() (types.ServerSideEncryption, *string) {
	kinds := map[string]types.ServerSideEncryption{SSES3: types.ServerSideEncryptionAes256, SSEKMS: types.ServerSideEncryptionAwsKms}
	return kinds[d.options.SSE], optional(d.options.KMSKeyID)
}

// checksum returns the checksum algorithm of an upload's parts, "" for none. The upload must
// be created with the same algorithm: by default the SDK sets CRC32 for parts and none for the
// upload.
func (d *Destination) checksum() types.ChecksumAlgorithm {
	if d.client.Options().RequestChecksumCalculation == aws.RequestChecksumCalculationWhenSupported {
		return types.ChecksumAlgorithmCrc32
	}
	return ""
}

// checkContext returns an error if the context is cancelled. Operations that send a request at
// once need not call it, because their request fails.
func (d *Destination) checkContext(ctx context.Context, op, name string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("cannot %s %s: %w", op, d.path(name), context.Cause(ctx))
	}
	return nil
}

// object is a small object that was read from the bucket.
type object struct {
	data    []byte
	version string
	age     time.Duration // age of the object by the store's own clock; negative if unknown
}

func (d *Destination) get(ctx context.Context, name string) (object, error) {
	out, err := d.answer(ctx, name)
	if err != nil {
		return object{}, err
	}
	defer func() { _ = out.Body.Close() }() // the body is only read
	data, err := io.ReadAll(out.Body)
	if err != nil {
		return object{}, err
	}
	o := object{data: data, version: aws.ToString(out.ETag), age: -1}
	if now, ok := awsmiddleware.GetServerTime(out.ResultMetadata); ok && out.LastModified != nil {
		o.age = max(0, now.Sub(*out.LastModified))
	}
	return o, nil
}

func (d *Destination) head(ctx context.Context, name string) (*awss3.HeadObjectOutput, error) {
	return d.client.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: &d.name, Key: d.key(name)})
}

// Open returns a data object's content, which is the body of the store's answer.
func (d *Destination) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := load.CheckName(name); err != nil {
		return nil, err
	}
	out, err := d.answer(ctx, name)
	if err != nil {
		return nil, err
	}
	return out.Body, nil
}

// body is the content of an object. It turns errors of reading into errors of package load.
type body struct {
	io.ReadCloser
	fail func(error) error
}

// Read reads the object's content; its errors are those of package load.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // io.Reader gives EOF itself
		err = b.fail(err)
	}
	return n, err
}

// answer requests an object and returns the store's answer. The caller closes the answer's
// body.
func (d *Destination) answer(ctx context.Context, name string) (*awss3.GetObjectOutput, error) {
	out, err := d.client.GetObject(ctx, &awss3.GetObjectInput{Bucket: &d.name, Key: d.key(name)})
	switch {
	case noKey(err):
		return nil, fmt.Errorf("cannot read %s: %w", d.path(name), load.ErrNotExist)
	case err != nil:
		return nil, d.fail(ctx, "read", name, err)
	}
	out.Body = &body{ReadCloser: out.Body, fail: func(err error) error { return d.fail(ctx, "read", name, err) }}
	return out, nil
}

// Stat describes an object by the metadata that the store has of it.
func (d *Destination) Stat(ctx context.Context, name string) (load.Object, error) {
	if err := load.CheckName(name); err != nil {
		return load.Object{}, err
	}
	out, err := d.head(ctx, name)
	switch {
	case noKey(err):
		return load.Object{}, fmt.Errorf("%s: %w", d.path(name), load.ErrNotExist)
	case err != nil:
		return load.Object{}, d.fail(ctx, "look at", name, err)
	}
	return load.Object{
		Name: name, Bytes: aws.ToInt64(out.ContentLength), Changed: aws.ToTime(out.LastModified), Marked: out.Metadata[idMetadata] != "",
	}, nil
}

// putInput returns the request that writes a small object with an id in its
// metadata.
func (d *Destination) putInput(name string, data []byte, id string) *awss3.PutObjectInput {
	in := &awss3.PutObjectInput{
		Bucket: &d.name, Key: d.key(name),
		Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))), Metadata: map[string]string{idMetadata: id},
	}
	in.ServerSideEncryption, in.SSEKMSKeyId = d.encryption()
	return in
}

func (d *Destination) remove(ctx context.Context, name string) error {
	_, err := d.client.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: &d.name, Key: d.key(name)})
	if err != nil && !noKey(err) {
		return d.fail(ctx, "remove", name, err)
	}
	return nil
}
