package pipelines

import (
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
)

func TestGathered(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	w := func(from, to int) extract.Window { return extract.Window{From: day(from), To: day(to)} }
	got := gathered([]extract.Window{w(20, 21), w(3, 4), w(1, 2), w(1, 3), w(7, 8), {To: day(1)}}, replayGap)
	want := []extract.Window{{To: day(4)}, w(7, 8), w(20, 21)}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if w := got[i]; !w.From.IsZero() && !w.To.IsZero() && !w.From.Before(w.To) {
			t.Errorf("gathered %s", w)
		}
		if got[i] != want[i] {
			t.Errorf("%v, not %v", got[i], want[i])
		}
	}
	if open := gathered([]extract.Window{{From: day(2)}, w(9, 10)}, 0); len(open) != 1 || !open[0].To.IsZero() {
		t.Errorf("%v", open)
	}
}
