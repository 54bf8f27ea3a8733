package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/readback"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/idset"
)

// scene is a dataset of two days as a run left it, for a test to spoil.
type scene struct {
	t     *testing.T
	d     *Definition
	o     *Output
	form  *Form
	parts map[string]string // data by path
	facts Facts
	mark  string

	unset int64   // a result that the id sets lack
	more  []int64 // those that they hold besides
}

const dayOne, dayTwo = "dt=2026-01-01/part-1.ndjson", "dt=2026-01-02/part-2.ndjson"

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{
		t: t, d: &Definition{Zone: time.UTC}, o: &Output{Dir: t.TempDir(), Partition: "day", Extension: ".ndjson"},
		form: NewForm(formservice.NewForm("form1", nil, nil)), mark: "r1\n",
	}
	for id := range int64(6) {
		s.put(1+id, int(1+id/3), "first")
	}
	s.parts = map[string]string{dayOne: lines(1, 2, 3), dayTwo: lines(4, 5, 6)}
	s.facts = Facts{Start: s.form.At(), Oldest: s.form.At(), End: s.form.At(), Good: true, Ranges: []Reading{{Span: span("2026-01-01", "2026-01-03")}}}
	return s
}

// put stores a result of a day of January.
func (s *scene) put(id int64, day int, answer string) {
	at := time.Date(2026, 1, day, 12, 0, int(id), 0, time.UTC)
	s.form.Put(formservice.Result{
		ID: id, Metas: []formservice.Meta{{ID: "date_finish", Value: at.Format(formservice.WallTime)}},
		Items: []formservice.Answer{{ID: "1", Values: []string{answer}}},
	})
}

func line(id int64, answer string) string {
	return fmt.Sprintf(`{"result_id":%d,"date_finish":"2026-01-%02dT12:00:%02dZ","item_1":%q}`+"\n", id, 1+(id-1)/3, id, answer)
}

func lines(ids ...int64) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(line(id, "first"))
	}
	return b.String()
}

func span(from, to string) readback.Span {
	day := func(text string) readback.WallTime {
		t, err := time.Parse(time.DateOnly, text)
		if err != nil {
			panic(err)
		}
		return readback.WallTime{Time: t}
	}
	return readback.Span{From: day(from), To: day(to)}
}

// write writes the dataset as an honest program would.
func (s *scene) write() {
	s.t.Helper()
	parts := make([]map[string]any, 0, len(s.parts))
	rows := 0
	for path, data := range s.parts {
		s.file(path, data)
		sum := sha256.Sum256([]byte(data))
		var ids []int64
		for l := range strings.Lines(data) {
			var row struct {
				ID int64 `json:"result_id"`
			}
			if err := json.Unmarshal([]byte(l), &row); err != nil {
				s.t.Fatal(err)
			}
			ids = append(ids, row.ID)
		}
		packed := idset.Encode(idset.Of(append(s.more, ids...)...).Without(idset.Of(s.unset)))
		of := sha256.Sum256(packed)
		s.file("_ids/"+hex.EncodeToString(of[:])+".ids", string(packed))
		day := strings.TrimPrefix(filepath.Dir(path), "dt=")
		next, _ := time.Parse(time.DateOnly, day)
		parts = append(parts, map[string]any{
			"path": path, "from": day + " 00:00:00", "to": next.AddDate(0, 0, 1).Format(time.DateTime), "rows": len(ids),
			"min_id": ids[0], "max_id": ids[len(ids)-1], "bytes": len(data), "sha256": hex.EncodeToString(sum[:]), "ids": hex.EncodeToString(of[:]),
		})
		rows += len(ids)
	}
	manifest, err := json.Marshal(map[string]any{
		"run_id": "r1", "rows": rows, "parts": parts, "range": map[string]string{"from": "2026-01-01 00:00:00", "to": "2026-01-03 00:00:00"},
		"schema": []readback.Column{{Name: "result_id", Type: "int64", From: "result_id"}, {Name: "date_finish", Type: "timestamp", From: "meta:date_finish"}, {Name: "item_1", Type: "string", From: "item:1"}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.file(readback.ManifestName, string(manifest))
	s.file(readback.SuccessName, s.mark)
}

func (s *scene) file(name, data string) {
	s.t.Helper()
	path := filepath.Join(s.o.Dir, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(path), 0o750)
	if err == nil {
		err = os.WriteFile(path, []byte(data), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// comeLate lets a result of the second day come between an unfinished run and the one that
// continues it. The former took nothing over from a day on.
func (s *scene) comeLate(day int) {
	s.put(9, 2, "first")
	s.facts.Start, s.facts.End = s.form.At(), s.form.At()
	s.facts.Ranges[0].Continued, s.facts.Ranges[0].Unread = true, time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
}

// comeUndated lets a result without a date come before the run, and another one go during it.
func (s *scene) comeUndated(unproven bool) {
	s.form.Put(formservice.Result{ID: 9})
	s.facts.Start, s.facts.Oldest, s.facts.Undated, s.facts.Unproven = s.form.At(), s.form.At(), true, unproven
	s.form.Remove(2)
	s.facts.End = s.form.At()
}

// verdict is what the oracle says, "" for nothing.
func (s *scene) verdict() string {
	after, err := s.d.Look(s.o)
	if err == nil {
		err = s.d.Judge(s.o, s.form, &Look{}, after, s.facts)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// TestJudge spoils what an honest program wrote, or says otherwise what the
// service held, and the oracle has to notice.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(s *scene) // before it is written
		after func(s *scene)
		want  string // "": nothing is wrong
	}{
		{name: "nothing"},
		{name: "a row is lost", spoil: func(s *scene) { s.parts[dayOne] = lines(1, 3) }, want: "lacks result 2"},
		{name: "a row is in two parts", spoil: func(s *scene) { s.parts[dayTwo] = lines(3, 4, 5, 6) }, want: "result 3 is here and in"},
		{name: "a row is twice in a part", spoil: func(s *scene) { s.parts[dayTwo] = lines(4, 5, 5, 6) }, want: "result 5 is here and in"},
		{name: "a row is in another part", spoil: func(s *scene) { s.parts[dayOne], s.parts[dayTwo] = lines(1, 2), lines(3, 4, 5, 6) }, want: "that state is dated"},
		{name: "a value is another", spoil: func(s *scene) { s.parts[dayOne] = lines(1, 2) + line(3, "other") }, want: `column "item_1" is "other", and then was "first"`},
		{name: "a row of nobody", spoil: func(s *scene) { s.parts[dayTwo] = lines(4, 5, 6) + line(6+1, "first") }, want: "none of its states"},
		{name: "a state of before", spoil: func(s *scene) { s.put(2, 1, "later") }, want: ""},
		{name: "a state that had ended", spoil: func(s *scene) {
			s.put(2, 1, "later")
			s.facts.Start, s.facts.Oldest, s.facts.End = s.form.At(), s.form.At(), s.form.At()
		}, want: `column "item_1" is "first", and then was "later"`},
		{name: "one who was not there all the time", spoil: func(s *scene) { s.put(9, 2, "first"); s.facts.End = s.form.At() }, want: ""},
		{name: "one who was deleted meanwhile", spoil: func(s *scene) {
			s.parts[dayOne] = lines(1, 3)
			s.form.Remove(2)
			s.facts.End = s.form.At()
		}, want: ""},
		{name: "one who does not match", spoil: func(s *scene) {
			s.d.Where = []formservice.Condition{{Column: "1", Operator: formservice.Equals, Term: "second"}}
		}, want: "does not match"},
		{name: "a part is changed", after: func(s *scene) { s.file(dayOne, lines(1, 2)) }, want: "not those of the manifest"},
		{name: "a part is gone", after: func(s *scene) { _ = os.Remove(filepath.Join(s.o.Dir, dayOne)) }, want: "it is not there"},
		{name: "a part of nobody", after: func(s *scene) { s.file("dt=2026-01-01/part-3.ndjson", lines(1)) }, want: "a glob for data"},
		{name: "a hidden part of nobody", after: func(s *scene) { s.file(".formetl/x.ndjson", lines(1)) }, want: "a glob for data"},
		{name: "no manifest", after: func(s *scene) { _ = os.Remove(filepath.Join(s.o.Dir, readback.ManifestName)) }, want: "has no manifest"},
		{name: "no mark", after: func(s *scene) { _ = os.Remove(filepath.Join(s.o.Dir, readback.SuccessName)) }, want: "has no _SUCCESS"},
		{name: "the mark of another run", spoil: func(s *scene) { s.mark = "r2\n" }, want: "_SUCCESS of"},
		{name: "an id set is gone", after: func(s *scene) { _ = os.RemoveAll(filepath.Join(s.o.Dir, "_ids")) }, want: "is missing or damaged"},
		{name: "an id set lacks a result", spoil: func(s *scene) { s.unset = 2 }, want: "is [1 3], and its rows are of [1 2 3]"},
		{name: "an id set holds others", spoil: func(s *scene) { s.more = []int64{9} }, want: " 9], and its rows are of ["},
		{name: "one who came while a run was unfinished", spoil: func(s *scene) { s.comeLate(3) }, want: ""},
		{name: "one whom no unfinished run took over", spoil: func(s *scene) { s.comeLate(2) }, want: "lacks result 9"},
		{name: "one without a date", spoil: func(s *scene) { s.comeUndated(false) }, want: "lacks result 9"},
		{name: "one without a date, and nothing but counts", spoil: func(s *scene) { s.comeUndated(true) }, want: ""},
		{name: "a part in a wrong folder", spoil: func(s *scene) { s.o.Partition = "month" }, want: "lies in"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			if c.spoil != nil {
				c.spoil(s)
			}
			s.write()
			if c.after != nil {
				c.after(s)
			}
			if got := s.verdict(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("the oracle says %q, and should say %q", got, c.want)
			}
		})
	}
}

// TestRow is what contract.md makes of values.
func TestRow(t *testing.T) {
	d := &Definition{Zone: time.UTC, Columns: []Column{{From: "item:9", OnError: "reject"}}}
	columns := func(kind string) []readback.Column { return []readback.Column{{Name: "c", Type: kind, From: "item:1"}} }
	for _, c := range []struct {
		kind   string
		values []string
		want   readback.Cell
	}{
		{"string", nil, readback.Cell{}},
		{"string", []string{""}, readback.Text("")},
		{"string", []string{"a|b", `c\`}, readback.Text(`a\|b|c\\`)},
		{"string", []string{"\x00\ufffe"}, readback.Text("\ufffd\ufffd")},
		{"list<string>", nil, readback.List()},
		{"list<string>", []string{""}, readback.List()},
		{"list<string>", []string{"", "a"}, readback.List(readback.Text(""), readback.Text("a"))},
		{"int64", []string{" 007 "}, readback.Text("7")},
		{"int64", []string{"5.5"}, readback.Cell{}},
		{"int64", []string{"9223372036854775808"}, readback.Cell{}},
		{"date", []string{"2025-02-30"}, readback.Cell{}},
		{"timestamp", []string{"2026-01-01 12:00:00"}, readback.Text("2026-01-01T12:00:00Z")},
	} {
		r := formservice.Result{ID: 1, Items: []formservice.Answer{{ID: "1", Values: c.values}}}
		row, rejected, err := d.Row(r, columns(c.kind))
		if err != nil || rejected || row["c"].String() != c.want.String() {
			t.Errorf("%q as %s is %s, rejected: %t, %v; it should be %s", c.values, c.kind, row["c"], rejected, err, c.want)
		}
	}
	_, rejected, err := d.Row(formservice.Result{ID: 1, Items: []formservice.Answer{{ID: "9", Values: []string{"x"}}}}, []readback.Column{{Name: "c", Type: "int64", From: "item:9"}})
	if !rejected || err != nil {
		t.Errorf("a value that does not fit is not rejected: %v", err)
	}
	if _, _, err := d.Row(formservice.Result{ID: 1, Items: []formservice.Answer{{ID: "2", Values: []string{"x"}}}}, columns("string")); err == nil {
		t.Error("a field without a column is no error")
	}
}
