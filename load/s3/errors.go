package s3

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/aws/smithy-go"

	"github.com/formetl/formetl/load"
)

// conflictCode is the answer of S3 to one of several conditional writes at the
// same moment. The SDK repeats the request.
const conflictCode = "ConditionalRequestConflict"

const credentialsHint = "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, the profile, or the machine's role"

// Reason says why a store refused a request.
type Reason string

// The reasons.
const (
	Credentials Reason = "credentials" // unknown, wrong, expired or missing
	NoBucket    Reason = "bucket"      // there is no bucket of that name
	Denied      Reason = "denied"      // not permitted, or another account's bucket
	WrongRegion Reason = "region"      // the bucket is elsewhere
	ClockSkew   Reason = "clock"       // this machine's clock is wrong
	Encryption  Reason = "encryption"  // KMS refused
	Unreachable Reason = "unreachable" // no answer, or none of an S3 server
	Busy        Reason = "busy"        // busy, also after the SDK's retries
	Other       Reason = "other"
)

// Refusal is why a store refused a request. It is wrapped by a
// *load.CreateError, *load.IOError or *load.TemporaryError. Its text holds
// neither a credential nor a signature.
type Refusal struct {
	Reason Reason
	What   string // in words
	Code   string // the store's error code, "" if it gave none
	Status int    // HTTP status, 0 without an answer
	Err    error  // the SDK's
}

// Error says what was refused, with the store's code.
func (r *Refusal) Error() string {
	switch {
	case r.Code != "":
		return fmt.Sprintf("%s (%s, HTTP %d)", r.What, r.Code, r.Status)
	case r.Status != 0:
		return fmt.Sprintf("%s (HTTP %d)", r.What, r.Status)
	}
	return r.What
}

// Unwrap gives the SDK's error.
func (r *Refusal) Unwrap() error { return r.Err }

// class is the kind of a failure, which decides on the exit code.
type class int

const (
	cannotUse class = iota // 73
	refused                // 74
	temporary              // 75
)

// known is a failure that the store's error code identifies.
type known struct {
	codes  []string
	reason Reason
	class  class
	what   string
	hint   string
}

func knownFailures() []known {
	return []known{
		{
			[]string{"InvalidAccessKeyId", "InvalidClientTokenId", "UnrecognizedClientException", "XAdminUserNotFound"},
			Credentials, refused, "the store does not know the access key", credentialsHint,
		},
		{
			[]string{"SignatureDoesNotMatch"},
			Credentials, refused, "the secret key does not fit the access key", credentialsHint,
		},
		{
			[]string{"ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired"},
			Credentials, refused, "the session's credentials have expired or are not valid", "get new ones; " + credentialsHint,
		},
		{
			[]string{"NoSuchBucket", "InvalidBucketName"},
			NoBucket, cannotUse, "there is no such bucket", "correct the bucket's name or the endpoint, or create the bucket: formetl makes none",
		},
		{
			[]string{"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "MovedPermanently"},
			WrongRegion, cannotUse, "the bucket is in another region", "set region: in the output's s3: settings, or AWS_REGION, to the bucket's own",
		},
		{
			[]string{"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"},
			ClockSkew, refused, "this machine's clock differs too much from the store's", "set the clock, then run again",
		},
		{
			[]string{"KMS.NotFoundException", "KMS.DisabledException", "KMS.KMSInvalidStateException", "KMS.InvalidKeyUsageException", "KMS.AccessDeniedException", "ServerSideEncryptionConfigurationNotFoundError"},
			Encryption, refused, "the object cannot be encrypted with that key", "check sse and kms_key_id, and that the key may be used for kms:GenerateDataKey and kms:Decrypt",
		},
		{
			[]string{"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "Throttling", "ThrottlingException", "TooManyRequests", "OperationAborted", conflictCode},
			Busy, temporary, "the store is busy", "try again later",
		},
		{
			[]string{"QuotaExceeded", "XMinioStorageFull", "NoSpaceLeft", "XAmzInsufficientStorage"},
			Other, refused, "the store is full", "free some space there and run again: nothing that was published is lost",
		},
	}
}

// errLate is a request whose deadline passed. It wraps
// context.DeadlineExceeded.
var errLate = fmt.Errorf("the store did not answer in time: %w", context.DeadlineExceeded)

// fail turns an error of the SDK into one with a class, an explanation and a
// hint. op and name say what was tried on which object.
func (b *bucket) fail(ctx context.Context, op, name string, err error) error {
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded): // the deadline of cleaning up or of a lease
		return &load.TemporaryError{Op: op, Path: b.path(name), Hint: "try again later", Err: errLate}
	case ctx.Err() != nil:
		return fmt.Errorf("cannot %s %s: %w", op, b.path(name), context.Cause(ctx))
	}
	r, c, hint := b.explain(err)
	switch c {
	case cannotUse:
		return &load.CreateError{Op: op, Path: b.path(name), Hint: hint, Err: r}
	case temporary:
		return &load.TemporaryError{Op: op, Path: b.path(name), Hint: hint, Err: r}
	}
	return &load.IOError{Op: op, Path: b.path(name), Hint: hint, Err: r}
}

func (b *bucket) explain(err error) (*Refusal, class, string) {
	r := &Refusal{Reason: Other, Status: status(err), Code: code(err), Err: err}
	for _, k := range knownFailures() {
		if !slices.Contains(k.codes, r.Code) && (k.reason != WrongRegion || r.Status != http.StatusMovedPermanently) {
			continue
		}
		r.Reason, r.What = k.reason, k.what
		hint := k.hint
		if region := header(err, "X-Amz-Bucket-Region"); k.reason == WrongRegion && region != "" {
			hint = "set region: " + region + " in the output's s3: settings, or AWS_REGION"
		}
		return r, k.class, hint
	}
	switch {
	case r.Status == http.StatusForbidden || r.Status == http.StatusUnauthorized || r.Code == "AccessDenied":
		return b.denied(r)
	case r.Status == 0:
		return unreachable(r)
	case r.Status == http.StatusTooManyRequests || r.Status >= 500 && r.Status != http.StatusNotImplemented:
		r.Reason, r.What = Busy, "the store failed"
		return r, temporary, "try again later"
	}
	if r.Status < http.StatusMultipleChoices {
		r.What = "what answers there does not speak S3"
		return r, refused, "check the endpoint: it must be the store's own address"
	}
	r.What = "the store refused the request"
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorMessage() != "" {
		r.What += ": " + strings.TrimSpace(api.ErrorMessage())
	}
	return r, refused, "check the endpoint and the output's s3: settings"
}

func (b *bucket) denied(r *Refusal) (*Refusal, class, string) {
	r.Reason, r.What = Denied, "the store denies it"
	hint := "allow these credentials s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload, s3:ListMultipartUploadParts there, and s3:ListBucket, s3:ListBucketMultipartUploads on the bucket (README, section S3)"
	if b.options.ExpectedBucketOwner != "" {
		r.What += ", or the bucket is not of account " + b.options.ExpectedBucketOwner
		hint = "check expected_bucket_owner and the bucket's name; " + hint
	}
	return r, refused, hint
}

// unreachable explains a request without an answer. A wrong host name or
// certificate stays wrong; any other failure may be temporary.
func unreachable(r *Refusal) (*Refusal, class, string) {
	r.Reason = Unreachable
	cause := r.Err
	var u *url.Error
	for errors.As(cause, &u) {
		cause = u.Err
	}
	r.What = "the store cannot be reached: " + cause.Error()
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var op *net.OpError
	switch {
	case errors.As(cause, &dns) && dns.IsNotFound:
		return r, cannotUse, "check the endpoint, the region and the bucket's name"
	case errors.As(cause, &cert):
		return r, cannotUse, "check the endpoint, or name its authority's certificates in AWS_CA_BUNDLE"
	case errors.As(cause, &op), u != nil, errors.Is(cause, io.ErrUnexpectedEOF), errors.Is(cause, os.ErrDeadlineExceeded):
		return r, temporary, "check the endpoint and the network, and try again later"
	}
	var canceled interface{ CanceledError() bool }
	if errors.As(cause, &canceled) {
		return r, temporary, "try again later"
	}
	r.Reason, r.What = Other, "the request could not be made: "+cause.Error()
	return r, refused, "check the output's s3: settings and the AWS configuration"
}

// code is the store's code of an error, "" if it gave none.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// status is the HTTP status of an error, 0 without an answer.
func status(err error) int {
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) && answer.Response != nil {
		return answer.HTTPStatusCode()
	}
	return 0
}

func header(err error, name string) string {
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) && answer.Response != nil && answer.Response.Response != nil {
		return answer.Response.Header.Get(name)
	}
	return ""
}

// noKey tells whether an error means that the object is missing. The status 404
// does not suffice: it may mean the bucket or, with versitygw, the user. An
// answer to HEAD has no code, and the SDK sets NotFound.
func noKey(err error) bool {
	c := code(err)
	return c == "NoSuchKey" || c == "NotFound"
}

func noUpload(err error) bool { return code(err) == "NoSuchUpload" }

// unmet tells whether an error means that a write's condition did not hold.
func unmet(err error) bool {
	return code(err) == "PreconditionFailed" || status(err) == http.StatusPreconditionFailed
}
