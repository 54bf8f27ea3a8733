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
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/formetl/formetl/load"
)

// conflictCode is the error code that S3 gives to one of several conditional
// writes at the same moment. The SDK repeats the request.
const conflictCode = "ConditionalRequestConflict"

const credentialsHint = "set or correct the credentials: formetl takes AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN if they are set, else the profile in ~/.aws (AWS_PROFILE), else the machine's role"

// failure says what is at fault when a request failed, and what the user is told.
type failure struct {
	kind       load.Kind
	what, hint string
}

// errLate means that the store did not answer before the request's deadline. It wraps
// context.DeadlineExceeded.
var errLate = fmt.Errorf("the store did not answer in time: %w", context.DeadlineExceeded)

// fail turns an error of the SDK into a *load.Error with a kind, an explanation and a hint,
// which says that op failed on the object name.
func (d *Destination) fail(ctx context.Context, op, name string, err error) error {
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded): // of cleaning up, or of a lease
		return &load.Error{Kind: load.ErrAway, Op: op, Path: d.path(name), Remedy: "run the same command again later", Err: errLate}
	case ctx.Err() != nil:
		return fmt.Errorf("cannot %s %s: %w", op, d.path(name), context.Cause(ctx))
	}
	f := d.explain(err)
	r := &load.Refusal{What: f.what, Err: err}
	if s := status(err); s != 0 {
		r.Code = strings.TrimPrefix(fmt.Sprintf("%s, HTTP %d", code(err), s), ", ")
	}
	return &load.Error{Kind: f.kind, Op: op, Path: d.path(name), Remedy: f.hint, Err: r}
}

// explain explains an error of the SDK by the store's code, or else by the
// status of its answer.
func (d *Destination) explain(err error) failure {
	if f, ok := byCode(err); ok {
		return f
	}
	switch s := status(err); {
	case s == http.StatusForbidden || s == http.StatusUnauthorized || code(err) == "AccessDenied":
		return d.denied()
	case s == 0:
		return unreachable(err)
	case s == http.StatusTooManyRequests || s >= http.StatusInternalServerError && s != http.StatusNotImplemented:
		return failure{load.ErrAway, "the store failed", "run the same command again later"}
	case s < http.StatusMultipleChoices:
		return failure{load.ErrFailed, "the server at the endpoint is not an S3 store", "correct endpoint: in the output's s3: settings; it must be the store's own address"}
	}
	what := "the store refused the request"
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorMessage() != "" {
		what += ": " + strings.TrimSpace(api.ErrorMessage())
	}
	return failure{load.ErrFailed, what, "check the endpoint and the output's s3: settings"}
}

// byCode explains an error by the store's code. It returns false if the code is missing or
// unknown. A redirection may have no code, so its HTTP status stands for the code.
func byCode(err error) (failure, bool) {
	c := code(err)
	s, header := httpAnswer(err)
	if s == http.StatusMovedPermanently {
		c = "MovedPermanently"
	}
	switch c {
	case "InvalidAccessKeyId", "InvalidClientTokenId", "UnrecognizedClientException", "XAdminUserNotFound":
		return failure{load.ErrFailed, "the S3 store does not know this access key", credentialsHint}, true
	case "SignatureDoesNotMatch":
		return failure{load.ErrFailed, "the secret key does not match the access key", credentialsHint}, true
	case "ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired":
		return failure{load.ErrFailed, "the session's credentials are invalid or have expired", "renew the session, and " + credentialsHint}, true
	case "NoSuchBucket", "InvalidBucketName":
		return failure{load.ErrUnusable, "the bucket does not exist", "correct the bucket's name or the endpoint, or create the bucket; formetl does not create buckets"}, true
	case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "MovedPermanently":
		hint := "set region: in the output's s3: settings, or AWS_REGION, to the bucket's region"
		if region := header.Get("X-Amz-Bucket-Region"); region != "" {
			hint = "set region: " + region + " in the output's s3: settings, or AWS_REGION"
		}
		return failure{load.ErrUnusable, "the bucket is in another region", hint}, true
	case "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture":
		return failure{load.ErrFailed, "this machine's clock differs too much from the store's", "set the clock, then run again"}, true
	case "KMS.NotFoundException", "KMS.DisabledException", "KMS.KMSInvalidStateException", "KMS.InvalidKeyUsageException",
		"KMS.AccessDeniedException", "ServerSideEncryptionConfigurationNotFoundError":
		hint := "check sse and kms_key_id, and that these credentials may use the key for kms:GenerateDataKey and kms:Decrypt"
		return failure{load.ErrFailed, "the store cannot encrypt with that key", hint}, true
	case "SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "Throttling", "ThrottlingException", "TooManyRequests",
		"OperationAborted", conflictCode:
		return failure{load.ErrAway, "the store is busy", "run the same command again later"}, true
	case "QuotaExceeded", "XMinioStorageFull", "NoSpaceLeft", "XAmzInsufficientStorage":
		return failure{load.ErrFailed, "the store is full", "free some space in the store; what was there before is kept"}, true
	}
	return failure{}, false
}

func (d *Destination) denied() failure {
	hint := "let the owner of the bucket give these credentials the rights that `formetl help s3` lists"
	return failure{load.ErrFailed, "the store denies access", hint}
}

// unreachable explains why a request got no answer. A wrong host name or
// certificate stays wrong. Any other failure may be temporary.
func unreachable(cause error) failure {
	var u *url.Error
	for errors.As(cause, &u) {
		cause = u.Err
	}
	what := "the store cannot be reached: " + cause.Error()
	dns, isDNS := errors.AsType[*net.DNSError](cause)
	_, isCert := errors.AsType[*tls.CertificateVerificationError](cause)
	_, isOp := errors.AsType[*net.OpError](cause)
	_, isCanceled := errors.AsType[interface {
		error
		CanceledError() bool
	}](cause)
	switch {
	case isDNS && dns.IsNotFound:
		return failure{load.ErrUnusable, what, "check the region, the bucket's name and the endpoint (for a store other than AWS: endpoint: in the s3: settings, or AWS_ENDPOINT_URL)"}
	case isCert:
		return failure{load.ErrUnusable, what, "check the endpoint, or set AWS_CA_BUNDLE to a file with the certificates of its authority"}
	case isOp, u != nil, errors.Is(cause, io.ErrUnexpectedEOF), errors.Is(cause, os.ErrDeadlineExceeded):
		return failure{load.ErrAway, what, "check the endpoint and the network, and run the same command again later"}
	case isCanceled:
		return failure{load.ErrAway, what, "run the same command again later"}
	}
	return failure{load.ErrFailed, "the request could not be sent: " + cause.Error(), "check the output's s3: settings and the AWS configuration (AWS_* variables, ~/.aws/config)"}
}

// code returns the store's code in an error, "" if there is none.
func code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// httpAnswer returns the status and the header of the HTTP answer that caused
// an error. They are 0 and nil if there was none.
func httpAnswer(err error) (int, http.Header) {
	if e, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && e.Response != nil && e.Response.Response != nil {
		return e.Response.StatusCode, e.Response.Header
	}
	return 0, nil
}

func status(err error) int {
	s, _ := httpAnswer(err)
	return s
}

// noKey tells whether an error means that the object is missing. The HTTP status 404 does not
// suffice: it may mean that the bucket or, with versitygw, the user is missing. An answer to
// HEAD has no code, so the SDK sets the code NotFound.
func noKey(err error) bool {
	c := code(err)
	return c == "NoSuchKey" || c == "NotFound"
}

func noUpload(err error) bool { return code(err) == "NoSuchUpload" }

// unmet tells whether an error means that the condition of a write did not hold.
func unmet(err error) bool {
	return code(err) == "PreconditionFailed" || status(err) == http.StatusPreconditionFailed
}
