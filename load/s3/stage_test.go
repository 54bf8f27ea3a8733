package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/formetl/formetl/load/loadtest"

	"github.com/formetl/formetl/load"
)

// random gives bytes that no compression helps with.
func random(n int) []byte {
	source := rand.NewChaCha8([32]byte{1})
	data := make([]byte, n)
	_, _ = source.Read(data) // never fails
	return data
}

// Lengths around the bounds of parts, with more parts than are in flight.
func TestParts(t *testing.T) {
	content := random(4*MinPartSize + 1)
	eachServer(t, func(t *testing.T, s server) {
		for _, inFlight := range []int{1, 3} {
			d := s.open(t, "parts", func(o *Options) { o.PartSize, o.PartsInFlight = MinPartSize, inFlight })
			for _, n := range []int{1, MinPartSize - 1, MinPartSize, MinPartSize + 1, 2 * MinPartSize, 4*MinPartSize + 1} {
				p := stage(t, d, "x.bin", content[:n])
				sum := sha256.Sum256(content[:n])
				if p.Bytes != int64(n) || p.SHA256 != hex.EncodeToString(sum[:]) {
					t.Fatalf("%d bytes: %+v", n, p)
				}
				st, err := decodeStaged(p.Staged)
				if want := (n + MinPartSize - 1) / MinPartSize; err != nil || len(st.Parts) != want {
					t.Errorf("%d bytes: %d parts, %v, want %d", n, len(st.Parts), err, want)
				}
				p.Replace = true
				if err := d.Commit(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				if got, _, err := d.Get(t.Context(), "x.bin"); err != nil || !bytes.Equal(got, content[:n]) {
					t.Fatalf("%d bytes: read %d back, %v", n, len(got), err)
				}
			}
			if left := names(t, d); len(left) != 1 {
				t.Errorf("left %v", left)
			}
		}
	})
}

func TestTooManyParts(t *testing.T) {
	f, d := fakeDestination(t, func(o *Options) { o.PartSize = MinPartSize })
	d.maxParts = 2
	p := stage(t, d, "x.csv", make([]byte, 2*MinPartSize))
	if err := d.Commit(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	u, err := d.Stage(t.Context(), "run1", "y.csv")
	if err != nil {
		t.Fatal(err)
	}
	_, err = u.Write(make([]byte, 2*MinPartSize+1))
	if err == nil {
		_, err = u.Prepare(t.Context())
	}
	if !errors.Is(err, load.ErrUnusable) || !strings.Contains(loadtest.Told(err), "set part_size: 10MiB") || !strings.Contains(err.Error(), "2 parts") {
		t.Errorf("got %v", err)
	}
	if err := u.Abort(); err != nil || len(f.uploads) != 0 {
		t.Errorf("%d uploads are left, %v", len(f.uploads), err)
	}
}

// A part that fails ends the upload: the error is told again, nothing stays.
func TestPartFails(t *testing.T) {
	f, d := fakeDestination(t, func(o *Options) { o.PartSize = MinPartSize })
	f.refuse = func(r *http.Request) (int, string, http.Header) {
		if r.URL.Query().Get("partNumber") == "2" {
			return 403, "AccessDenied", nil
		}
		return 0, "", nil
	}
	u, err := d.Stage(t.Context(), "run1", "x.csv")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err = u.Write(make([]byte, MinPartSize)); err != nil {
			break
		}
	}
	refusal(t, err, load.ErrFailed, denied, "cannot write s3://bucket/lake/x.csv")
	if n, again := u.Write([]byte("x")); n != 0 || !errors.Is(again, err) {
		t.Errorf("a write after it gives %d, %v", n, again)
	}
	if _, again := u.Prepare(t.Context()); !errors.Is(again, err) {
		t.Errorf("prepare after it gives %v", again)
	}
	if err := u.Abort(); err != nil || len(f.uploads) != 0 {
		t.Errorf("%d uploads are left, %v", len(f.uploads), err)
	}
}

// A run that is stopped in the middle leaves nothing.
func TestStopped(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		d := s.open(t, "stopped", func(o *Options) { o.PartSize = MinPartSize })
		errStop := errors.New("stopped by the test")
		for _, when := range []string{"between writes", "before prepare", "with prepare's own"} {
			ctx, stop := context.WithCancelCause(t.Context())
			u, err := d.Stage(ctx, "run1", "x.csv")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := u.Write(make([]byte, 2*MinPartSize+1)); err != nil {
				t.Fatal(err)
			}
			prepare := ctx
			if when == "with prepare's own" {
				prepare, stop = context.WithCancelCause(t.Context())
			}
			stop(errStop)
			if when == "between writes" {
				// Parts in flight may still have room; a full one tells it.
				_, err = u.Write(make([]byte, 5*MinPartSize))
			}
			if err == nil {
				_, err = u.Prepare(prepare)
			}
			if !errors.Is(err, errStop) {
				t.Errorf("%s: got %v", when, err)
			}
			if err := u.Abort(); err != nil {
				t.Errorf("%s: abort gives %v", when, err)
			}
		}
		if left := names(t, d); len(left) != 0 {
			t.Errorf("left %v", left)
		}
	})
}

// Settings of encryption are sent with all objects.
func TestObjectSettings(t *testing.T) {
	f, d := fakeDestination(t, func(o *Options) {
		o.SSE, o.KMSKeyID = SSEKMS, "alias/forms"
	})
	seen := map[string]http.Header{}
	f.refuse = func(r *http.Request) (int, string, http.Header) {
		if r.Method == http.MethodPost && r.URL.Query().Has("uploads") || r.Method == http.MethodPut && !r.URL.Query().Has("uploadId") {
			seen[strings.TrimPrefix(r.URL.Path, "/bucket/lake/")] = r.Header
		}
		return 0, "", nil
	}
	for name, content := range map[string]string{"full.csv": "x", "empty.csv": ""} {
		if err := d.Commit(t.Context(), stage(t, d, name, []byte(content))); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Put(t.Context(), "_SUCCESS", nil, load.AnyVersion); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"full.csv", "empty.csv", "_SUCCESS"} {
		h := seen[name]
		if h.Get("X-Amz-Server-Side-Encryption") != "aws:kms" || h.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id") != "alias/forms" {
			t.Errorf("%s: %v", name, h)
		}
	}
	d.options.SSE, d.options.KMSKeyID = SSES3, ""
	if sse, key := d.encryption(); sse != "AES256" || key != nil {
		t.Errorf("got %v, %v", sse, key)
	}
}
