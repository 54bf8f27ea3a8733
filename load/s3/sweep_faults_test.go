package s3

import (
	"net/http"
	"slices"
	"testing"
)

// refuseNth has the fake refuse its n-th request from now on, counted from 0,
// and tells whether it came to that.
func (f *fake) refuseNth(n int) (refused *bool) {
	refused = new(bool)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = func(*http.Request) (int, string, http.Header) {
		if n--; n != -1 {
			return 0, "", nil
		}
		*refused = true
		return http.StatusInternalServerError, "InternalError", nil
	}
	return refused
}

// A store that does not answer has not said that there is nothing: whatever
// request it refuses, the look for leftovers fails or tells them all.
func TestSweepWhereTheStoreFails(t *testing.T) {
	f, d := fakeDestination(t, nil)
	for _, name := range []string{"x.csv", "dt=2026-01-01/y.csv", "dt=2026-01-01/z.csv"} {
		stage(t, d, name, []byte("content"))
	}
	want := swept(t, d)
	failed := 0
	for n, refused := 0, new(bool); n == 0 || *refused; n++ {
		refused = f.refuseNth(n)
		left, err := d.Staged(t.Context())
		switch {
		case err != nil && !*refused:
			t.Fatal(err)
		case err != nil:
			failed++
		case len(left) != len(want):
			t.Errorf("request %d was refused, and left over are %+v", n, left)
		}
	}
	f.refuseNth(-1)
	if failed == 0 || !slices.Equal(swept(t, d), want) {
		t.Errorf("%d looks failed; left over are %q, want %q", failed, swept(t, d), want)
	}
	sweepAll(t, d)
}

// Whatever request is refused, a removal that fails can be done again, and one
// that does not has removed the upload and its marker.
func TestRemoveWhereTheStoreFails(t *testing.T) {
	for n, hit := 0, true; hit; n++ {
		f, d := fakeDestination(t, nil)
		stage(t, d, "x.csv", []byte("content"))
		left, err := d.Staged(t.Context())
		if err != nil || len(left) != 1 {
			t.Fatalf("left over are %+v, %v", left, err)
		}
		refused := f.refuseNth(n)
		err = d.Abort(t.Context(), prepared(left[0]))
		if hit = *refused; hit != (err != nil) {
			t.Errorf("request %d refused: %t, and the error is %v", n, hit, err)
		}
		f.refuseNth(-1)
		if err := d.Abort(t.Context(), prepared(left[0])); err != nil {
			t.Error(err)
		}
		if found := swept(t, d); len(found) > 0 || len(f.uploads) > 0 {
			t.Errorf("request %d was refused; still left over are %q, %v", n, found, f.uploads)
		}
	}
}
