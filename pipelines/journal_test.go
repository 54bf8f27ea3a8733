package pipelines

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

func TestBeyond(t *testing.T) {
	done := window("2026-01-10", "2026-01-20")
	unbounded := window("", "2026-01-20")
	for _, c := range []struct {
		w, done extract.Window
		want    []extract.Window
	}{
		{window("2026-01-10", "2026-01-20"), done, nil},
		{window("2026-01-12", "2026-01-15"), done, nil},
		{window("2026-01-10", "2026-01-21"), done, []extract.Window{window("2026-01-20", "2026-01-21")}},
		{window("2026-01-01", "2026-01-15"), done, []extract.Window{window("2026-01-01", "2026-01-10")}},
		{window("2026-01-01", "2026-02-01"), done, []extract.Window{window("2026-01-01", "2026-01-10"), window("2026-01-20", "2026-02-01")}},
		{window("2026-02-01", "2026-02-02"), done, []extract.Window{window("2026-02-01", "2026-02-02")}},
		{window("2026-01-20", "2026-02-02"), done, []extract.Window{window("2026-01-20", "2026-02-02")}},
		{window("2026-01-01", "2026-01-10"), done, []extract.Window{window("2026-01-01", "2026-01-10")}},
		{window("", "2026-01-15"), done, []extract.Window{window("", "2026-01-10")}},
		{window("", "2026-01-10"), done, []extract.Window{window("", "2026-01-10")}},
		{window("2026-01-01", "2026-01-15"), unbounded, nil},
		{window("", "2026-01-25"), unbounded, []extract.Window{window("2026-01-20", "2026-01-25")}},
		{window("2026-01-20", "2026-01-25"), unbounded, []extract.Window{window("2026-01-20", "2026-01-25")}},
	} {
		if got := beyond(c.w, c.done); !slices.Equal(got, c.want) {
			t.Errorf("%s less %s is %v, want %v", c.w, c.done, got, c.want)
		}
	}
}

func TestStatsSurviveTheJournal(t *testing.T) {
	full := transform.Stats{
		Rows: 5, Rejected: 2,
		Rejects: map[transform.Fault]int64{{Column: "a", Reason: "no number"}: 2},
		Nulled:  map[transform.Fault]int64{{Column: "b", Reason: "no date"}: 1},
		Joined:  map[string]int64{"c": 3}, Shifted: map[string]int64{"d": 4},
		Ignored: map[schemas.Source]int64{{Kind: schemas.FromItem, ID: "7"}: 9},
		Added: []schemas.Column{{
			Name: "item_9", From: schemas.Source{Kind: schemas.FromItem, ID: "9"},
			Type: schemas.ListOf(schemas.Type{Kind: schemas.String}), Label: "Nine", Inferred: true,
		}},
	}
	for _, s := range []transform.Stats{{}, full} {
		data, err := json.Marshal(recordStats(s))
		if err != nil {
			t.Fatal(err)
		}
		var r statsRecord
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		got, err := r.stats()
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v came back as %+v (%v)", s, got, err)
		}
	}
	for name, r := range map[string]statsRecord{
		"a type":   {Added: []load.Column{{Name: "x", Type: "colour", From: "item:1"}}},
		"a source": {Ignored: map[string]int64{"nowhere": 1}},
	} {
		if _, err := r.stats(); err == nil {
			t.Errorf("%s that is none is taken", name)
		}
	}
}

func TestWindowSurvivesTheJournal(t *testing.T) {
	w := &windowRun{
		planned: extract.Planned{Window: window("2026-01-01", "2026-01-02")}, readAt: 4, ids: bitmap(1, 5, 1<<40),
		stats: transform.Stats{Rows: 2, Rejected: 1}, rejects: []transform.Reject{{ResultID: 5, Column: "a", Raw: "x", Reason: "y"}}, replaced: 3,
	}
	record := func(change func(*windowRecord)) (reading, error) {
		r, err := recordWindow(w)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back windowRecord
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		change(&back)
		return back.reading()
	}
	got, err := record(func(*windowRecord) {})
	if err != nil || got.number != 4 || !got.ids.Equals(w.ids) || got.stats.Rows != 2 || !slices.Equal(got.rejects, w.rejects) || got.replaced != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	for name, change := range map[string]func(*windowRecord){
		"rows":    func(r *windowRecord) { r.Stats.Rows = 3 },
		"rejects": func(r *windowRecord) { r.Rejects = nil },
		"reading": func(r *windowRecord) { r.Reading = 0 },
		"ids":     func(r *windowRecord) { r.IDs = r.IDs[:len(r.IDs)-1] },
	} {
		if _, err := record(change); err == nil {
			t.Errorf("%s that do not agree are taken", name)
		}
	}
}

func TestFrozenPlan(t *testing.T) {
	good := func() *frozen {
		z := &frozen{Range: wallRange(window("", "2026-01-03")), Groups: []int64{3, 2}, Total: 5}
		for i, w := range []extract.Window{window("", "2026-01-01"), window("2026-01-01", "2026-01-02"), window("2026-01-02", "2026-01-03")} {
			z.Windows = append(z.Windows, frozenWindow{Range: wallRange(w), Count: int64(i), Group: i / 2})
		}
		return z
	}
	plan, err := good().plan()
	if err != nil || plan.Total != 5 || len(plan.Windows) != 3 || plan.Windows[2].Window != window("2026-01-02", "2026-01-03") || plan.Windows[2].Group != 1 {
		t.Errorf("%+v, %v", plan, err)
	}
	for name, change := range map[string]func(*frozen){
		"no windows":    func(z *frozen) { z.Windows = nil },
		"a gap":         func(z *frozen) { z.Windows = slices.Delete(z.Windows, 1, 2) },
		"another range": func(z *frozen) { z.Range.To = load.Wall(wall("2026-01-04")) },
		"no such group": func(z *frozen) { z.Windows[1].Group = 2 },
		"a group below": func(z *frozen) { z.Windows[1].Group = -1 },
		"no end":        func(z *frozen) { z.Windows[2].To = load.WallTime{} },
	} {
		z := good()
		change(z)
		if _, err := z.plan(); err == nil {
			t.Errorf("a plan with %s is taken", name)
		}
	}
}

// FuzzJournalRecord reads records that anybody may have written: what is taken
// agrees with itself.
func FuzzJournalRecord(f *testing.F) {
	w := &windowRun{planned: extract.Planned{Window: window("2026-01-01", "2026-01-02")}, readAt: 1, ids: bitmap(3), stats: transform.Stats{Rows: 1}}
	p := &datasetPart{windows: []*windowRun{w}}
	r, err := recordWindow(w)
	if err != nil {
		f.Fatal(err)
	}
	data, err := json.Marshal(partRecord{Windows: []windowRecord{r}, Columns: "x"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, int64(1))
	f.Add([]byte(`{"windows":[{"from":null}]}`), int64(0))
	f.Add([]byte(`[]`), int64(-1))
	f.Fuzz(func(t *testing.T, body []byte, rows int64) {
		record := load.JournalRecord{Parts: []load.PreparedPart{{Part: load.Part{Rows: rows}}}, Body: body}
		list, _, err := readingsOf(record, p, false)
		if err != nil {
			return
		}
		if len(list) != 1 || list[0].stats.Rows != rows || uint64(rows+list[0].stats.Rejected) != list[0].ids.GetCardinality() {
			t.Fatalf("%s is taken as %+v", body, list)
		}
	})
}
