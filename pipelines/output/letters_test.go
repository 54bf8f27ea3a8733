package output

import (
	"strings"
	"testing"
)

func TestDeadLettersAreReadBack(t *testing.T) {
	line := func(window string) string {
		return `{"result_id":7,"column":"n","raw":"secret","reason":"not a whole number","window":"` + window + `"}` + "\n"
	}
	l := Letters{Results: map[int64]bool{}}
	if err := l.parse([]byte(line("2026-01-01 00:00:00/2026-01-02 00:00:00") + "\n" + line("../2026-01-01 00:00:00") + line("undated"))); err != nil {
		t.Fatal(err)
	}
	if len(l.Results) != 1 || len(l.Windows) != 2 || !l.Undated || !l.Windows[1].From.IsZero() {
		t.Errorf("read %+v", l)
	}
	for name, text := range map[string]string{
		"no JSON": "secret", "torn": `{"result_id":7,"raw":"secr`, "no window": line(""), "an empty window": line("2026-01-02 00:00:00/2026-01-02 00:00:00"),
		"half a window": line("2026-01-02 00:00:00"), "a negative id": `{"result_id":-1,"raw":"secret","window":"undated"}`,
	} {
		l := Letters{Results: map[int64]bool{}}
		if err := l.parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "line 1 is not a dead letter") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDeadLetters: what is read back has windows that a run can be given.
func FuzzDeadLetters(f *testing.F) {
	f.Add([]byte(`{"result_id":7,"window":"2026-01-01 00:00:00/.."}`))
	f.Add([]byte("{\"result_id\":7,\"window\":\"undated\"}\n\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := Letters{Results: map[int64]bool{}}
		if l.parse(data) != nil {
			return
		}
		for _, w := range l.Windows {
			if back, err := parseWindow(w.String()); err != nil || back != w {
				t.Errorf("%s reads back as %s: %v", w, back, err)
			}
		}
	})
}
