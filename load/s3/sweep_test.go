package s3

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/lease"
)

// prepared is what removes a leftover.
func prepared(l load.Leftover) load.Prepared {
	return load.Prepared{Name: l.Name, Staged: l.Staged}
}

// swept gives what is left over, each as "run name".
func swept(t *testing.T, d *Destination) []string {
	t.Helper()
	left, err := d.Staged(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := make([]string, 0, len(left))
	for _, l := range left {
		found = append(found, strings.TrimSpace(fmt.Sprintf("%s %s %s", l.Kind, l.Run, l.Name)))
	}
	slices.Sort(found)
	return found
}

// sweepAll removes all that is left over.
func sweepAll(t *testing.T, d *Destination) {
	t.Helper()
	left, err := d.Staged(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range left {
		if err := d.Abort(t.Context(), prepared(l)); err != nil {
			t.Error(err)
		}
	}
	if found := swept(t, d); len(found) > 0 {
		t.Errorf("still left over is %q", found)
	}
}

// The fake store gives two entries a page.
func TestLeftoversInPages(t *testing.T) {
	f, d, _ := marked(t)
	for i := range 5 {
		stage(t, d, fmt.Sprintf("marked-%d.csv", i), []byte("content"))
	}
	if found := swept(t, d); len(found) != 5 {
		t.Errorf("left over are %q", found)
	}
	sweepAll(t, d)
	if len(f.objects)+len(f.uploads) > 0 {
		t.Errorf("%d objects, %d uploads", len(f.objects), len(f.uploads))
	}
}

// A store need not list the parts of an upload: what is marked is found all the same.
func TestPartsCannotBeListed(t *testing.T) {
	for code, status := range map[string]int{"AccessDenied": http.StatusForbidden, "NotImplemented": http.StatusNotImplemented, "MethodNotAllowed": http.StatusMethodNotAllowed} {
		f, d, log := marked(t)
		p := stage(t, d, "x.csv", []byte("content"))
		f.refuse = func(r *http.Request) (int, string, http.Header) {
			if r.Method == http.MethodGet && r.URL.Query().Has("uploadId") {
				return status, code, nil
			}
			return 0, "", nil
		}
		left, err := d.Staged(t.Context())
		if err != nil || len(left) != 1 || left[0].Bytes != -1 || left[0].Name != "x.csv" {
			t.Fatalf("%s: left over are %+v, %v", code, left, err)
		}
		for range 2 {
			if err := d.Check(t.Context(), p); err != nil {
				t.Errorf("%s: check gives %v", code, err)
			}
		}
		if got := strings.Count(log.String(), "does not say whether unfinished uploads still exist"); got != 1 {
			t.Errorf("%s: it is said %d times: %s", code, got, log)
		}
		if err := d.Abort(t.Context(), prepared(left[0])); err != nil || len(f.uploads)+len(f.objects) > 0 {
			t.Errorf("%s: %d uploads, %d objects, %v", code, len(f.uploads), len(f.objects), err)
		}
	}
}

func TestSweepRefused(t *testing.T) {
	f, d, _ := marked(t)
	p := stage(t, d, "x.csv", []byte("content"))
	left, err := d.Staged(t.Context())
	if err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	f.refuse = func(*http.Request) (int, string, http.Header) {
		return http.StatusForbidden, "SignatureDoesNotMatch", nil
	}
	_, leftovers := d.Staged(t.Context())
	_, holders := d.Holders(t.Context())
	for _, err := range []error{leftovers, holders, d.Abort(t.Context(), prepared(left[0])), d.Check(t.Context(), p)} {
		refusal(t, err, load.ErrFailed, credentials)
	}
}

// Markers may hold anything; no more than they themselves can be lost.
func TestMarkerCannotBeRead(t *testing.T) {
	f, d, _ := marked(t)
	for i, text := range []string{"", "{", `{"name":"../x","upload":"u"}`, `{"name":".formetl/intent","upload":"u"}`, `{"name":"x.csv"}`} {
		if err := d.Put(t.Context(), load.StagedName("run1", "A"+strings.Repeat("B", i)), []byte(text), load.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
	f.calls = nil
	if found := swept(t, d); len(found) != 5 || found[0] != "unfinished upload run1" {
		t.Errorf("left over are %q", found)
	}
	sweepAll(t, d)
	if slices.Contains(f.verbs(), "abort") {
		t.Error("an upload is aborted that no marker tells")
	}
	if len(f.objects) > 0 {
		t.Errorf("%d objects are left", len(f.objects))
	}
}

// An upload comes back while a part of it is still arriving.
func TestRemoveUntilGone(t *testing.T) {
	f, d, _ := marked(t)
	stage(t, d, "x.csv", []byte("content"))
	left, err := d.Staged(t.Context())
	if err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	again := 2
	f.refuse = func(r *http.Request) (int, string, http.Header) {
		if r.Method == http.MethodDelete && r.URL.Query().Has("uploadId") && again > 0 {
			again--
			return http.StatusNoContent, "", nil
		}
		return 0, "", nil
	}
	f.calls = nil
	if err := d.Abort(t.Context(), prepared(left[0])); err != nil {
		t.Fatal(err)
	}
	if len(f.uploads)+len(f.objects) > 0 {
		t.Errorf("%d uploads, %d objects", len(f.uploads), len(f.objects))
	}
}

// An upload whose run died before it was marked is found by the store's list.
func TestUnmarkedUpload(t *testing.T) {
	f, d, _ := marked(t)
	stage(t, d, "x.csv", []byte("content"))
	for path := range f.objects {
		if strings.Contains(path, "/staged-") {
			delete(f.objects, path)
		}
	}
	left, err := d.Staged(t.Context())
	if err != nil || len(left) != 1 || left[0].Run != "" || left[0].Name != "x.csv" || left[0].Kind != load.UnfinishedUpload {
		t.Fatal(left, err)
	}
	if err := d.Abort(t.Context(), prepared(left[0])); err != nil || len(f.uploads) > 0 {
		t.Errorf("%d uploads, %v", len(f.uploads), err)
	}
}

// A lease that Acquire would replace is held by nobody.
func TestHoldersLeftOut(t *testing.T) {
	f, d, _ := marked(t)
	dead := lease.ThisProcess()
	dead.Start = "0"
	if lease.ThisProcess().Start == "" {
		dead.PID = 1 << 30
	}
	records := map[string]lease.Record{
		".formetl/lease":       {Holder: load.Holder{RunID: "live"}, Process: lease.ThisProcess(), Renewed: time.Now()},
		".formetl/lease-1":     {Scope: "a.csv", Holder: load.Holder{RunID: "elsewhere"}, Process: lease.Process{Host: "elsewhere", PID: 1}, Renewed: time.Now()},
		".formetl/lease-2":     {Scope: "b.csv", Holder: load.Holder{RunID: "dead"}, Process: dead, Renewed: time.Now()},
		".formetl/leases":      {Holder: load.Holder{RunID: "no lease"}, Renewed: time.Now()},
		".formetl/lease-x/one": {Holder: load.Holder{RunID: "no lease"}, Renewed: time.Now()},
	}
	for name, r := range records {
		if _, err := (leaseObject{d, name}).Write(t.Context(), r, load.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
	holders := func(want ...string) {
		t.Helper()
		held, err := d.Holders(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := make([]string, 0, len(held))
		for _, h := range held {
			got = append(got, h.RunID+" "+h.Scope)
		}
		if !slices.Equal(got, want) {
			t.Errorf("held by %q, want %q", got, want)
		}
	}
	holders("live ", "elsewhere a.csv")
	f.mu.Lock()
	f.now = f.now.Add(d.times.Expire + 2*time.Second)
	f.mu.Unlock()
	holders()
}
