package pipelines

import (
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
)

func TestDeadLettersAreReadBack(t *testing.T) {
	line := func(window string) string {
		return `{"result_id":7,"column":"n","raw":"secret","reason":"not an integer","window":"` + window + `"}` + "\n"
	}
	l := letters{results: map[int64]bool{}}
	if err := l.parse([]byte(line("2026-01-01 00:00:00/2026-01-02 00:00:00") + "\n" + line("../2026-01-01 00:00:00") + line("undated"))); err != nil {
		t.Fatal(err)
	}
	if len(l.results) != 1 || len(l.windows) != 2 || !l.undated || !l.windows[1].From.IsZero() {
		t.Errorf("read %+v", l)
	}
	for name, text := range map[string]string{
		"no JSON": "secret", "torn": `{"result_id":7,"raw":"secr`, "no window": line(""), "an empty window": line("2026-01-02 00:00:00/2026-01-02 00:00:00"),
		"half a window": line("2026-01-02 00:00:00"), "a negative id": `{"result_id":-1,"raw":"secret","window":"undated"}`,
	} {
		l := letters{results: map[int64]bool{}}
		if err := l.parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "line 1 is no dead letter") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGathered(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	w := func(from, to int) extract.Window { return extract.Window{From: day(from), To: day(to)} }
	got := gathered([]extract.Window{w(20, 21), w(3, 4), w(1, 2), w(1, 3), w(7, 8), {To: day(1)}}, replayGap)
	want := []extract.Window{{To: day(4)}, w(7, 8), w(20, 21)}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v, not %v", got[i], want[i])
		}
	}
	if open := gathered([]extract.Window{{From: day(2)}, w(9, 10)}, 0); len(open) != 1 || !open[0].To.IsZero() {
		t.Errorf("%v", open)
	}
}

// FuzzDeadLetters: what is read back has windows that a run can be given.
func FuzzDeadLetters(f *testing.F) {
	f.Add([]byte(`{"result_id":7,"window":"2026-01-01 00:00:00/.."}`))
	f.Add([]byte("{\"result_id\":7,\"window\":\"undated\"}\n\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := letters{results: map[int64]bool{}}
		if l.parse(data) != nil {
			return
		}
		for _, w := range l.windows {
			if back, err := parseWindowName(w.String()); err != nil || back != w {
				t.Errorf("%s reads back as %s: %v", w, back, err)
			}
		}
		for _, w := range gathered(l.windows, replayGap) {
			if !w.From.IsZero() && !w.To.IsZero() && !w.From.Before(w.To) {
				t.Errorf("gathered %s", w)
			}
		}
	})
}
