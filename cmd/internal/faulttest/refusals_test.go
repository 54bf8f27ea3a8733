package faulttest

import (
	"encoding/xml"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/extract/formservice"
)

// refusal is a store that does not let formetl write, and what formetl has to
// say of it.
type refusal struct {
	name     string
	bucket   string   // "": one that is there
	settings string   // of the output's s3:, besides the endpoint
	env      []string // over the right credentials
	secrets  []string // that must not be seen, besides the right ones
	key      string   // of the service, "": the right one
	// endpoint gives where the store is, nil for the real one. It may prepare
	// the bucket.
	endpoint func(t *testing.T, b bucket) string
	code     int
	says     []string // on standard error
}

const reader, readerSecret = "formetlreader", "formetl-reader-secret"

// asReader are the credentials of a user who may do what a bucket's policy
// lets him.
func asReader() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + reader, "AWS_SECRET_ACCESS_KEY=" + readerSecret}
}

const wrongSecret = "wrong-secret-77c1"

// refusals are those of a store for what the credentials are or may do.
func refusals() []refusal {
	return []refusal{
		{
			name: "wrong secret", env: []string{"AWS_SECRET_ACCESS_KEY=" + wrongSecret}, secrets: []string{wrongSecret},
			code: exitIO, says: []string{"the secret key does not fit the access key", "AWS_SECRET_ACCESS_KEY", "SignatureDoesNotMatch"},
		},
		{
			name: "unknown access key", env: []string{"AWS_ACCESS_KEY_ID=nobody"},
			code: exitIO, says: []string{"the store does not know the access key", "check AWS_ACCESS_KEY_ID"},
		},
		{
			name: "no credentials", env: []string{"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY="},
			code: exitIO, says: []string{"no S3 credentials were found", "check AWS_ACCESS_KEY_ID", "the profile, or the machine's role"},
		},
		{
			name: "missing bucket", bucket: "there-is-no-such-bucket",
			code: exitCantCreate, says: []string{"s3://there-is-no-such-bucket/lake/", "there is no such bucket", "create the bucket"},
		},
		{
			name: "nothing may be written", env: asReader(), secrets: []string{readerSecret}, endpoint: readOnly,
			code: exitIO, says: []string{"the store denies it", "AccessDenied", "s3:PutObject"},
		},
		{
			name: "data may not be written", env: asReader(), secrets: []string{readerSecret}, endpoint: controlOnly,
			code: exitIO, says: []string{"part-", "the store denies it", "AccessDenied", "s3:PutObject"},
		},
	}
}

// wrongPlaces are stores that are not where, or not what, the definition says.
func wrongPlaces() []refusal {
	return []refusal{
		{
			name: "wrong region", settings: ", region: eu-central-9",
			code: exitCantCreate, says: []string{"the bucket is in another region", "set region:", "AWS_REGION"},
		},
		{
			name: "region told", endpoint: refusing(http.StatusMovedPermanently, "PermanentRedirect", http.Header{"X-Amz-Bucket-Region": {"eu-west-1"}}),
			code: exitCantCreate, says: []string{"the bucket is in another region", "set region: eu-west-1"},
		},
		{
			// versitygw gives this too, but only to a client whose clock is wrong.
			name: "clock skew", endpoint: refusing(http.StatusForbidden, "RequestTimeTooSkewed", nil),
			code: exitIO, says: []string{"this machine's clock differs", "set the clock"},
		},
		{
			name: "another account's bucket", settings: `, expected_bucket_owner: "111122223333"`, endpoint: ownedBy("444455556666"),
			code: exitIO, says: []string{"the bucket is not of account 111122223333", "check expected_bucket_owner"},
		},
		{
			name: "a web page", endpoint: webPage(http.StatusOK),
			code: exitIO, says: []string{"check the endpoint"},
		},
		{
			name: "a web page that takes no PUT", endpoint: webPage(http.StatusMethodNotAllowed),
			code: exitIO, says: []string{"check the endpoint"},
		},
		{
			name: "nobody listens", endpoint: nobody, env: []string{"AWS_MAX_ATTEMPTS=2"},
			code: exitTemporary, says: []string{"the store cannot be reached", "connection refused", "check the endpoint and the network"},
		},
		{
			name: "unknown certificate", endpoint: unknownCertificate, env: []string{"AWS_MAX_ATTEMPTS=2"},
			code: exitCantCreate, says: []string{"certificate", "AWS_CA_BUNDLE"},
		},
		{
			name: "wrong API key", key: "wrong-api-key-9d", secrets: []string{"wrong-api-key-9d"},
			code: exitNoPermit, says: []string{"error 100"},
		},
	}
}

const refusedDefinition = `version: 1
name: refused
source: {base_url: %s, account: acme, timezone: UTC}
forms: [form1]
extract: {from: 2025-01-01, to: 2025-03-01}
load:
  - {path: "s3://%s/lake/", format: csv, s3: {endpoint: "%s", path_style: true%s}}
`

// TestRefusals holds that each store that refuses gives one error that says
// what to do, and that nothing that is written holds a secret.
func TestRefusals(t *testing.T) {
	t.Parallel()
	needServer(t)
	service := serve(t, smallForm())
	for _, c := range append(refusals(), wrongPlaces()...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBucket(t)
			name, endpoint := b.name, server.URL
			if c.bucket != "" {
				name = c.bucket
			}
			if c.endpoint != nil {
				endpoint = c.endpoint(t, b)
			}
			dir := t.TempDir()
			definition := write(t, dir, "refused.yaml", fmt.Sprintf(refusedDefinition, service.URL, name, endpoint, c.settings))
			if c.key != "" {
				c.env = append(c.env, "FORMETL_API_KEY="+c.key)
			}
			p := formetl(t, dir, c.env, "run", definition, "--report", "report.json", "--log-level", "debug")
			p.secrets = append(p.secrets, c.secrets...)
			p.start(t)
			r := p.end(t)
			r.wantError(t, c.code, c.says...)
			if c.code == exitTemporary && !strings.Contains(r.stderr, "run the same command again later") {
				t.Error("nothing says that it may be run again")
			}
			checkFilesHideSecrets(t, dir, p.secrets)
			for object := range b.objects(t) {
				if !strings.HasPrefix(object, ".formetl/") {
					t.Errorf("%s was written", object)
				}
			}
		})
	}
}

// checkFilesHideSecrets looks for secrets in all that a run wrote: report,
// state, checkpoint.
func checkFilesHideSecrets(t testing.TB, dir string, secrets []string) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		seen++
		for _, secret := range secrets {
			if strings.Contains(string(data), secret) {
				t.Errorf("%s holds a secret", path)
			}
		}
		return err
	})
	if err != nil || seen < 2 {
		t.Errorf("%d files were looked at, %v", seen, err)
	}
}

// policy lets the reader do some actions on some of a bucket's objects.
func policy(t *testing.T, b bucket, actions, objects string) {
	t.Helper()
	text := fmt.Sprintf(`{"Version": "2012-10-17", "Statement": [
		{"Effect": "Allow", "Principal": {"AWS": [%q]}, "Action": ["s3:ListBucket"], "Resource": ["arn:aws:s3:::%s"]},
		{"Effect": "Allow", "Principal": {"AWS": [%q]}, "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::%s/*"]},
		{"Effect": "Allow", "Principal": {"AWS": [%q]}, "Action": [%s], "Resource": ["arn:aws:s3:::%s/%s"]}]}`,
		reader, b.name, reader, b.name, reader, actions, b.name, objects)
	if _, err := b.client.PutBucketPolicy(t.Context(), &awss3.PutBucketPolicyInput{Bucket: &b.name, Policy: aws.String(text)}); err != nil {
		t.Fatal(err)
	}
}

func readOnly(t *testing.T, b bucket) string {
	policy(t, b, `"s3:GetObject"`, "*")
	return server.URL
}

func controlOnly(t *testing.T, b bucket) string {
	policy(t, b, `"s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"`, "lake/.formetl/*")
	return server.URL
}

// refuse writes S3's answer to a request that is refused.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_ = xml.NewEncoder(w).Encode(struct { // a client that is gone has no use for it
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}{Code: code, Message: "as the test wants"})
}

// refusing is a store that gives one answer to everything.
func refusing(status int, code string, header http.Header) func(*testing.T, bucket) string {
	return func(t *testing.T, _ bucket) string {
		return listen(t, func(w http.ResponseWriter, _ *http.Request) {
			for name, values := range header {
				w.Header()[name] = values
			}
			refuse(w, status, code)
		})
	}
}

// ownedBy is the real store, which does not know owners by their account,
// behind one that does.
func ownedBy(account string) func(*testing.T, bucket) string {
	return func(t *testing.T, _ bucket) string {
		to, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // it is signed
		}}
		return listen(t, func(w http.ResponseWriter, r *http.Request) {
			if want := r.Header.Get("X-Amz-Expected-Bucket-Owner"); want != "" && want != account {
				refuse(w, http.StatusForbidden, "AccessDenied")
				return
			}
			proxy.ServeHTTP(w, r)
		})
	}
}

func webPage(status int) func(*testing.T, bucket) string {
	return func(t *testing.T, _ bucket) string {
		return listen(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			fmt.Fprint(w, "<!DOCTYPE html><html><head><title>Welcome<body><p>It works!")
		})
	}
}

func nobody(t *testing.T, _ bucket) string {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return "http://" + l.Addr().String()
}

func unknownCertificate(t *testing.T, _ bucket) string {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

func listen(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.URL
}

// users is what versitygw's own store of users holds besides the owner.
func users() string {
	return fmt.Sprintf(`{"accessAccounts": {%q: {"access": %q, "secret": %q, "role": "user"}}}`, reader, reader, readerSecret)
}

// smallForm is a form whose results come in a few requests.
func smallForm() *formservice.Form {
	return formservice.Generate(formservice.GenerateOptions{Results: 250, From: day(1, 1), To: day(3, 1), Items: 4})
}

// serve starts a test service with forms and the tests' key.
func serve(t testing.TB, forms ...*formservice.Form) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(&formservice.Server{Key: apiKey, Forms: forms})
	t.Cleanup(s.Close)
	return s
}
