package extracttest

import (
	"errors"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
)

// Wall reads a wall-clock time: a day such as "2026-01-02", or a time such as
// "2026-01-02 10:00:00". Nothing is the zero time. Other text panics.
func Wall(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	layout := extract.WireTime
	if len(s) == len(time.DateOnly) {
		layout = time.DateOnly
	}
	wall, err := time.Parse(layout, s)
	if err != nil {
		panic(err)
	}
	return wall
}

// Window is the window between two times as Wall reads them; "" is a side
// without a bound.
func Window(from, to string) extract.Window {
	return extract.Window{From: Wall(from), To: Wall(to)}
}

// MustAs returns the error of type E that err wraps, and ends the test if there
// is none.
func MustAs[E error](t testing.TB, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("err = %v (%T), want a %T", err, err, e)
	}
	return e
}
