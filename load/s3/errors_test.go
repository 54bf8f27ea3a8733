package s3

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/load/loadtest"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// The reasons of refusals that several codes or failures share.
const (
	credentials = "access key|credentials"
	noBucket    = "bucket does not exist"
	denied      = "the store denies access"
	wrongRegion = "in another region|the region is not set"
	clockSkew   = "clock differs"
	encryption  = "cannot encrypt"
	unreached   = "the store cannot be reached"
	busy        = "the store is busy|the store failed"
	other       = "the store is full|the store refused the request"
)

// refusal checks an error's class and reason, that it says what is wanted,
// and that it holds no secret.
func refusal(t *testing.T, err error, kind load.Kind, reason string, wants ...string) {
	t.Helper()
	var r *load.Refusal
	if !errors.Is(err, kind) || !errors.As(err, &r) ||
		!slices.ContainsFunc(strings.Split(reason, "|"), func(words string) bool { return strings.Contains(r.What, words) }) {
		t.Fatalf("got %T %v, want %v with the reason %s", err, err, kind, reason)
	}
	for _, want := range wants {
		if text := loadtest.Told(err); !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	for _, secret := range []string{needs.S3SecretKey, "wrong-secret", "Signature=", "AWS4-HMAC"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q holds a secret", err)
		}
	}
}

// everyUse gives the error of each way in which a run first meets a bucket.
func everyUse(t *testing.T, d *Destination) map[string]error {
	t.Helper()
	_, _, get := d.Get(t.Context(), "x")
	_, lease := d.Acquire(t.Context(), "", load.Holder{})
	u, err := d.Stage(t.Context(), "run1", "x.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = u.Abort() }()
	_, _ = u.Write([]byte("content")) // told by Prepare
	_, prepare := u.Prepare(t.Context())
	return map[string]error{
		"get": get, "put": d.Put(t.Context(), "x", nil, load.AnyVersion),
		"delete": d.Delete(t.Context(), "x"), "lease": lease, "prepare": prepare,
	}
}

// Real servers refuse each way in which a run first meets a bucket.
func TestServersRefuse(t *testing.T) {
	for _, c := range []struct {
		name, variable, value string
		root, region          string
		check                 func(t *testing.T, err error)
	}{
		{"wrong secret", "AWS_SECRET_ACCESS_KEY", "wrong-secret", "s3://" + testBucket + "/x", "", func(t *testing.T, err error) {
			refusal(t, err, load.ErrFailed, credentials, "does not match the access key", "AWS_SECRET_ACCESS_KEY", "s3://"+testBucket+"/x/")
		}},
		{"unknown key", "AWS_ACCESS_KEY_ID", "nobody", "s3://" + testBucket + "/x", "", func(t *testing.T, err error) {
			refusal(t, err, load.ErrFailed, credentials, "does not know this access key")
		}},
		{"no bucket", "", "", "s3://no-such-bucket/x", "", func(t *testing.T, err error) {
			refusal(t, err, load.ErrUnusable, noBucket, "s3://no-such-bucket/x/", "bucket does not exist", "correct the bucket's name")
		}},
		{"wrong region", "", "", "s3://" + testBucket + "/x", "eu-central-9", func(t *testing.T, err error) {
			refusal(t, err, load.ErrUnusable, wrongRegion, "another region", "set region")
		}},
	} {
		eachServer(t, func(t *testing.T, s server) {
			if c.region != "" && strings.HasPrefix(s.name, "minio") {
				return // it takes any region
			}
			if c.variable != "" {
				t.Setenv(c.variable, c.value)
			}
			d, err := New(t.Context(), c.root, Options{Endpoint: s.URL, Region: c.region})
			if err != nil {
				t.Fatal(err)
			}
			for use, err := range everyUse(t, d) {
				t.Run(c.name+", "+use, func(t *testing.T) { c.check(t, err) })
			}
		})
	}
}

func TestNoCredentials(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	_, err := New(t.Context(), "s3://bucket/x", Options{})
	refusal(t, err, load.ErrFailed, credentials, "no S3 credentials", "AWS_ACCESS_KEY_ID")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(ctx, "s3://bucket/x", Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context gives %v", err)
	}
}

func TestNoRegion(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	_, err := New(t.Context(), "s3://bucket/x", Options{})
	refusal(t, err, load.ErrUnusable, wrongRegion, "the region is not set", "AWS_REGION")
	d, err := New(t.Context(), "s3://bucket/x", Options{Endpoint: "https://s3.example.com"})
	if err != nil || d.client.Options().Region != defaultRegion {
		t.Errorf("an endpoint without a region: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	_, server := newFake(t)
	server.Close()
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	d, err := New(t.Context(), "s3://bucket/x", Options{Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	refusal(t, d.Delete(t.Context(), "x"), load.ErrAway, unreached, "cannot be reached", "connection refused")
}

func TestUnknownCertificate(t *testing.T) {
	for _, s := range running {
		if s.CAFile == "" {
			continue
		}
		t.Setenv("AWS_CA_BUNDLE", "")
		t.Setenv("AWS_MAX_ATTEMPTS", "1")
		refusal(t, s.open(t, "x").Delete(t.Context(), "x"), load.ErrUnusable, unreached, "AWS_CA_BUNDLE")
	}
}

// What no real server here answers is played.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		code   string
		header http.Header
		check  func(t *testing.T, err error)
	}{
		{"denied", 403, "AccessDenied", nil, func(t *testing.T, err error) {
			refusal(t, err, load.ErrFailed, denied, "the store denies access", "(AccessDenied, HTTP 403)", "`formetl help s3`")
		}},
		{"elsewhere", 301, "PermanentRedirect", http.Header{"X-Amz-Bucket-Region": {"eu-west-1"}}, func(t *testing.T, err error) {
			refusal(t, err, load.ErrUnusable, wrongRegion, "set region: eu-west-1")
		}},
		{"signed for elsewhere", 400, "AuthorizationHeaderMalformed", nil, func(t *testing.T, err error) {
			refusal(t, err, load.ErrUnusable, wrongRegion, "another region", "AWS_REGION")
		}},
		{"clock", 403, "RequestTimeTooSkewed", nil, func(t *testing.T, err error) {
			refusal(t, err, load.ErrFailed, clockSkew, "set the clock")
		}},
		{"expired", 400, "ExpiredToken", nil, func(t *testing.T, err error) {
			refusal(t, err, load.ErrFailed, credentials, "have expired", "AWS_SESSION_TOKEN")
		}},
		{"key of KMS", 400, "KMS.NotFoundException", nil, func(t *testing.T, err error) {
			refusal(t, err, load.ErrFailed, encryption, "kms_key_id")
		}},
		{"busy", 503, "SlowDown", nil, func(t *testing.T, err error) {
			refusal(t, err, load.ErrAway, busy, "run the same command again later")
		}},
		{"failing", 502, "", nil, func(t *testing.T, err error) { refusal(t, err, load.ErrAway, busy, "the store failed") }},
		{"full", 507, "XMinioStorageFull", nil, func(t *testing.T, err error) { refusal(t, err, load.ErrFailed, other, "full") }},
		{"unknown", 400, "EntityTooLarge", nil, func(t *testing.T, err error) {
			refusal(t, err, load.ErrFailed, other, "EntityTooLarge", "as the test wants")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, d := fakeDestination(t, nil)
			f.refuse = func(*http.Request) (int, string, http.Header) {
				return c.status, c.code, c.header
			}
			for use, err := range everyUse(t, d) {
				t.Run(use, func(t *testing.T) { c.check(t, err) })
			}
		})
	}
}
