package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
)

// scene is a dataset of two days as a run left it, for a test to spoil.
type scene struct {
	t     *testing.T
	j     judge
	form  *people
	parts map[string]string // data by path
	mark  string

	unset int64   // a result that the id sets lack
	more  []int64 // those that they hold besides
}

const dayOne, dayTwo = "dt=2026-01-01/part-1.ndjson", "dt=2026-01-02/part-2.ndjson"

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, form: &people{form: formservice.NewForm(formName, nil, nil), results: map[int64]history{}}, mark: "r1\n"}
	for id := range int64(6) {
		s.put(1+id, int(1+id/3), "first")
	}
	s.parts = map[string]string{dayOne: lines(1, 2, 3), dayTwo: lines(4, 5, 6)}
	s.j = judge{
		d: &definition{zone: time.UTC}, o: &output{dir: t.TempDir(), partition: "day", extension: ".ndjson", blind: never}, before: &look{},
		facts: facts{reads: true, good: true, ranges: []reading{{Window: days(1, 3)}}},
	}
	s.run()
	return s
}

// run lets the run begin and end now.
func (s *scene) run() { s.j.start, s.j.oldest, s.j.end = s.form.at, s.form.at, s.form.at }

// put stores a result of a day of January.
func (s *scene) put(id int64, day int, answer string) {
	at := time.Date(2026, 1, day, 12, 0, int(id), 0, time.UTC)
	s.form.put(formservice.Result{
		ID: id, Metas: []formservice.Meta{{ID: "date_finish", Value: stamp(at)}},
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

// days are those of January from one up to another.
func days(from, to int) extract.Window {
	return extract.Window{From: time.Date(2026, 1, from, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 1, to, 0, 0, 0, 0, time.UTC)}
}

// write writes the dataset as an honest program would.
func (s *scene) write() {
	s.t.Helper()
	m := load.Manifest{RunID: "r1", Range: load.Span(days(1, 3).From, days(1, 3).To), Schema: []load.Column{
		{Name: "result_id", Type: "int64", From: "result_id"}, {Name: "date_finish", Type: "timestamp", From: "meta:date_finish"}, {Name: "item_1", Type: "string", From: "item:1"},
	}}
	for i, path := range []string{dayOne, dayTwo} {
		rows, err := readLines([]byte(s.parts[path]))
		if err != nil {
			s.t.Fatal(err)
		}
		held := idset.Builder{}
		for _, r := range rows {
			var id int64
			_, _ = fmt.Sscan(r["result_id"].(string), &id)
			held.Add(id)
		}
		ids := held.Set()
		packed := idset.Encode(idset.Of(s.more...).Union(ids).Without(idset.Of(s.unset)))
		s.file(path, s.parts[path])
		s.file(load.IDsName(idset.Sum(packed)), string(packed))
		p := load.Part{Path: path, Rows: int64(len(rows)), MinID: ids.Min(), MaxID: ids.Max(), Bytes: int64(len(s.parts[path])), SHA256: idset.Sum([]byte(s.parts[path])), IDs: idset.Sum(packed)}
		p.From, p.To = load.Wall(days(1+i, 2+i).From), load.Wall(days(1+i, 2+i).To)
		m.Parts, m.Rows = append(m.Parts, p), m.Rows+p.Rows
	}
	manifest, err := m.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	s.file(load.ManifestName, string(manifest))
	s.file(load.SuccessName, s.mark)
}

func (s *scene) file(name, data string) {
	s.t.Helper()
	path := filepath.Join(s.j.o.dir, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(path), 0o750)
	if err == nil {
		err = os.WriteFile(path, []byte(data), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// judge is what the oracle says, with how the manifest says that changes were found; "" for
// nothing.
func (s *scene) judge(changes *load.Changes) string {
	var err error
	if s.j.after, err = s.j.d.lookAt(s.j.o); err == nil {
		s.j.all = s.form.results
		if s.j.after.manifest != nil {
			s.j.after.manifest.Changes = changes
		}
		err = s.j.judge()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// TestJudge spoils what an honest program wrote, or says otherwise what the
// service held, and the oracle has to notice.
func TestJudge(t *testing.T) {
	undated := func(s *scene) { // a result without a date comes before the run, and another one goes during it
		s.form.put(formservice.Result{ID: 9})
		s.run()
		s.j.undated = true
		s.form.remove(2)
		s.j.end = s.form.at
	}
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
		{name: "a state of before", spoil: func(s *scene) { s.put(2, 1, "later"); s.j.end = s.form.at }},
		{name: "a state that had ended", spoil: func(s *scene) { s.put(2, 1, "later"); s.run() }, want: `column "item_1" is "first", and then was "later"`},
		{name: "one who was not there all the time", spoil: func(s *scene) { s.put(9, 2, "first"); s.j.end = s.form.at }},
		{name: "one who was deleted meanwhile", spoil: func(s *scene) { s.parts[dayOne] = lines(1, 3); s.form.remove(2); s.j.end = s.form.at }},
		{name: "one who does not match", spoil: func(s *scene) { s.j.d.complete = true }, want: "does not match"},
		{name: "one who is rejected, and not said to be", spoil: func(s *scene) {
			s.j.d.columns = []column{{"item_1", "item:1", "string", ""}, {"item_2", "item:2", "int64", "reject"}}
			s.form.put(formservice.Result{ID: 9, Metas: []formservice.Meta{{ID: "date_finish", Value: "2026-01-02 12:00:00"}}, Items: []formservice.Answer{{ID: "2", Values: []string{"x"}}}})
			s.run()
		}, want: "lacks result 9"},
		{name: "a part is changed", after: func(s *scene) { s.file(dayOne, lines(1, 2)) }, want: "not those of the manifest"},
		{name: "a part is gone", after: func(s *scene) { _ = os.Remove(filepath.Join(s.j.o.dir, dayOne)) }, want: "is not there"},
		{name: "a part of nobody", after: func(s *scene) { s.file("dt=2026-01-01/part-3.ndjson", lines(1)) }, want: "a glob for data"},
		{name: "a hidden part of nobody", after: func(s *scene) { s.file(".formetl/x.ndjson", lines(1)) }, want: "a glob for data"},
		{name: "no manifest", after: func(s *scene) { _ = os.Remove(filepath.Join(s.j.o.dir, load.ManifestName)) }, want: "has no manifest"},
		{name: "no mark", after: func(s *scene) { _ = os.Remove(filepath.Join(s.j.o.dir, load.SuccessName)) }, want: "has no _SUCCESS"},
		{name: "the mark of another run", spoil: func(s *scene) { s.mark = "r2\n" }, want: "_SUCCESS is of"},
		{name: "an id set is gone", after: func(s *scene) { _ = os.RemoveAll(filepath.Join(s.j.o.dir, "_ids")) }, want: "is missing or damaged"},
		{name: "an id set lacks a result", spoil: func(s *scene) { s.unset = 2 }, want: "is [1 3], and its rows are of [1 2 3]"},
		{name: "an id set holds others", spoil: func(s *scene) { s.more = []int64{9} }, want: " 9], and its rows are of ["},
		{name: "one without a date", spoil: undated, want: "lacks result 9"},
		{name: "one without a date, and nothing but counts", spoil: func(s *scene) { undated(s); s.j.unproven = true }},
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
			if got := s.judge(nil); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("the oracle says %q, and should say %q", got, c.want)
			}
		})
	}
}

// TestFollowed has a run that continues the dataset and read nothing of the two
// days: what changed there before it must be there all the same.
func TestFollowed(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(s *scene) // the run
		method string         // "": the service told
		want   string         // "": nothing is wrong
	}{
		{name: "nothing changed", before: func(*scene) {}},
		{name: "edited", before: func(s *scene) { s.put(2, 1, "later") }, want: `column "item_1" is "first", and then was "later"`},
		{name: "moved", before: func(s *scene) { s.put(2, 2, "first") }, want: "that state is dated 2026-01-02"},
		{name: "deleted", before: func(s *scene) { s.form.remove(2) }, want: "it was deleted, and is in"},
		{name: "new", before: func(s *scene) { s.put(9, 1, "first") }, want: "has no row"},
		{name: "edited, by lookback", before: func(s *scene) { s.put(2, 1, "later") }, method: load.MethodLookback},
		{name: "deleted, by lookback", before: func(s *scene) { s.form.remove(2) }, method: load.MethodLookback},
		{name: "edited while nobody knew", before: func(s *scene) { s.put(2, 1, "later"); s.j.o.blind = s.form.at }},
		{name: "outside the definition's range", before: func(s *scene) { s.put(9, 1, "first"); s.j.d.from = days(2, 3).From }},
	} {
		s := newScene(t)
		s.write()
		if said := s.judge(nil); said != "" {
			t.Fatal(said)
		}
		s.j.before, s.j.ranges, s.j.follows = s.j.after, []reading{{Window: days(2, 2)}}, true
		c.before(s)
		s.run()
		if c.method == "" {
			c.method = load.MethodChanges
		}
		if got := s.judge(&load.Changes{Method: c.method}); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: the oracle says %q, and should say %q", c.name, got, c.want)
		}
	}
}

// TestRows is what contract.md makes of values.
func TestRows(t *testing.T) {
	d := &definition{zone: time.UTC}
	columns := func(kind string) []load.Column { return []load.Column{{Name: "c", Type: kind, From: "item:1"}} }
	result := func(id string, values ...string) formservice.Result {
		return formservice.Result{ID: 1, Items: []formservice.Answer{{ID: id, Values: values}}}
	}
	for _, c := range []struct {
		kind   string
		values []string
		want   any
	}{
		{"string", nil, nil},
		{"string", []string{""}, ""},
		{"string", []string{"a|b", `c\`}, `a\|b|c\\`},
		{"string", []string{"\x00\ufffe"}, "\ufffd\ufffd"},
		{"list<string>", nil, []any{}},
		{"list<string>", []string{""}, []any{}},
		{"list<string>", []string{"", "a"}, []any{"", "a"}},
		{"int64", []string{" 007 "}, "7"},
		{"int64", []string{"5.5"}, nil},
		{"int64", []string{"9223372036854775808"}, nil},
		{"date", []string{"2025-02-30"}, nil},
		{"timestamp", []string{"2026-01-01 12:00:00"}, "2026-01-01T12:00:00Z"},
	} {
		rows, rejected, err := d.rows(result("1", c.values...), &output{}, columns(c.kind))
		if err != nil || rejected || fmt.Sprintf("%q", rows[0]["c"]) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%q as %s is %v, rejected: %t, %v; it should be %q", c.values, c.kind, rows, rejected, err, c.want)
		}
	}
	if _, _, err := d.rows(result("2", "x"), &output{}, columns("string")); err == nil {
		t.Error("a field without a column is no error")
	}
	d.columns = []column{{"c", "item:1", "int64", "reject"}}
	if _, rejected, err := d.rows(result("1", "x"), &output{}, columns("int64")); !rejected || err != nil {
		t.Errorf("a value that does not fit is not rejected: %v", err)
	}
}

// TestReadRows tells null from the empty string, keeps line ends, and refuses files that are
// cut, or hold what they should not.
func TestReadRows(t *testing.T) {
	rows, err := readRows("x.csv", []byte("id,a,l\n1,\"two\r\nlines, \"\"quoted\"\"\",a\\|b|\n2,,\n3,\"\",\"\"\n"), nil, time.UTC)
	if want := `[map["a":"two\r\nlines, \"quoted\"" "id":"1" "l":"a\\|b|"] map["id":"2"] map["a":"" "id":"3" "l":""]]`; err != nil || fmt.Sprintf("%q", rows) != want {
		t.Errorf("the rows are %q, %v", rows, err)
	}
	for name, data := range map[string]string{
		"nothing.csv": "", "cut.csv": "id,a\n1,x", "few.csv": "id,a\n1\n", "many.csv": "id,a\n1,x,y\n", "quote.csv": "id,a\n1,\"x\n", "ends.csv": "id,a\r\n1,x\r\n",
		"cut.ndjson": `{"id":1}`, "open.ndjson": `{"id":` + "\n", "more.ndjson": `{"id":1} 5` + "\n",
		"plain.csv.gz": "id,a\n", "cut.parquet": "PAR1", "other.txt": "",
	} {
		if rows, err := readRows(name, []byte(data), nil, time.UTC); err == nil {
			t.Errorf("%s of %q is read as %v", name, data, rows)
		}
	}
}
