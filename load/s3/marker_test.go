package s3

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
)

// marked gives a fake store's destination, with what it logs.
func marked(t *testing.T) (*fake, *Destination, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	f, d := fakeDestination(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	f.calls = nil
	return f, d, &log
}

// verbs gives what was asked of uploads and markers, in order.
func (f *fake) verbs() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var verbs []string
	for _, call := range f.calls {
		method, uri, _ := strings.Cut(call, " ")
		switch {
		case strings.Contains(uri, "/staged-"):
			verbs = append(verbs, method+" marker")
		case strings.Contains(uri, "uploads"):
			verbs = append(verbs, "begin")
		case strings.Contains(uri, "partNumber"):
			verbs = append(verbs, "part")
		case strings.Contains(uri, "uploadId") && method == http.MethodDelete:
			verbs = append(verbs, "abort")
		case strings.Contains(uri, "uploadId") && method == http.MethodGet:
			verbs = append(verbs, "ask")
		case strings.Contains(uri, "uploadId"):
			verbs = append(verbs, "complete")
		}
	}
	return verbs
}

func (f *fake) wantVerbs(t *testing.T, want ...string) {
	t.Helper()
	if got := f.verbs(); !slices.Equal(got, want) {
		t.Errorf("the store was asked for %q, want %q", got, want)
	}
}

// A marker is there from before an upload's first part until after its end.
func TestMarkerSpansItsUpload(t *testing.T) {
	t.Run("commit", func(t *testing.T) {
		f, d, _ := marked(t)
		p := stage(t, d, "x/part.csv", []byte("content"))
		var m marker
		for path, o := range f.objects {
			if run, _, ok := load.ParseStagedName(strings.TrimPrefix(path, "/bucket/lake/")); ok && run == "run1" {
				if err := json.Unmarshal(o.data, &m); err != nil {
					t.Fatal(err)
				}
			}
		}
		if m.Name != "x/part.csv" || f.uploads[m.Upload] == nil {
			t.Errorf("the marker holds %+v", m)
		}
		if err := d.Commit(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		f.wantVerbs(t, "begin", "PUT marker", "part", "complete", "DELETE marker")
	})
	t.Run("abort", func(t *testing.T) {
		f, d, _ := marked(t)
		if err := d.Abort(t.Context(), stage(t, d, "x/part.csv", []byte("content"))); err != nil {
			t.Fatal(err)
		}
		f.wantVerbs(t, "begin", "PUT marker", "part", "abort", "ask", "DELETE marker")
	})
	t.Run("empty", func(t *testing.T) {
		f, d, _ := marked(t)
		if err := d.Commit(t.Context(), stage(t, d, "x/part.csv", nil)); err != nil {
			t.Fatal(err)
		}
		f.wantVerbs(t)
	})
}

// refuseMarkers makes the store refuse one way to use markers.
func (f *fake) refuseMarkers(method string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = func(r *http.Request) (int, string, http.Header) {
		if r.Method == method && strings.Contains(r.URL.Path, "/staged-") {
			return http.StatusForbidden, "AccessDenied", nil
		}
		return 0, "", nil
	}
}

// An upload that cannot be marked would be lost sight of: it is not begun.
func TestMarkerCannotBePut(t *testing.T) {
	f, d, _ := marked(t)
	f.refuseMarkers(http.MethodPut)
	u, err := d.Stage(t.Context(), "run1", "x.csv")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = u.Write([]byte("content")) // told by Prepare
	_, err = u.Prepare(t.Context())
	refusal(t, err, load.ErrFailed, denied, "/staged-")
	f.wantVerbs(t, "begin", "PUT marker", "abort", "ask", "abort", "DELETE marker")
	if len(f.uploads) > 0 {
		t.Error("the upload is still there")
	}
}

// A marker that stays fails no commit. It is logged, and can be removed later.
func TestMarkerCannotBeRemoved(t *testing.T) {
	f, d, log := marked(t)
	committed, aborted := stage(t, d, "a.csv", []byte("content")), stage(t, d, "b.csv", []byte("content"))
	f.refuseMarkers(http.MethodDelete)
	if err := d.Commit(t.Context(), committed); err != nil {
		t.Fatal(err)
	}
	refusal(t, d.Abort(t.Context(), aborted), load.ErrFailed, denied, "/staged-")
	if got := strings.Count(log.String(), "`formetl clean` removes it"); got != 1 {
		t.Errorf("it is logged %d times: %s", got, log)
	}
	f.refuse = nil
	if found := swept(t, d); len(found) != 2 {
		t.Fatalf("left over are %q", found)
	}
	sweepAll(t, d)
	if string(f.objects["/bucket/lake/a.csv"].data) != "content" || len(f.objects) != 1 {
		t.Errorf("%d objects are there", len(f.objects))
	}
}

// TestAbortAfterStop: a run that was stopped still has time to clean up.
func TestAbortAfterStop(t *testing.T) {
	f, d, _ := marked(t)
	p := stage(t, d, "x.csv", []byte("content"))
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Abort(stopped, p); err != nil || len(f.uploads)+len(f.objects) > 0 {
		t.Errorf("left are %v, %v, %v", f.uploads, f.objects, err)
	}
}
