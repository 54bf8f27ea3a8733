package output

import (
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/transform"
)

func TestDivideIntoParts(t *testing.T) {
	planned := func(from, to string, n int64) *reading.Window {
		return &reading.Window{Planned: extract.Planned{Window: extracttest.Window(from, to), Count: n}}
	}
	windows := []*reading.Window{
		planned("", "2026-01-01", 10), planned("2026-01-01", "2026-01-20", 600_000), planned("2026-01-20", "2026-02-01", 500_000),
		planned("2026-02-01", "2026-02-10", 0), planned("2026-02-10", "2026-02-20", extract.Unknown), planned("2026-02-20", "2026-03-01", 5),
	}
	for partition, want := range map[definition.Partition]string{
		definition.PartitionNone:  "../2026-01-20 2026-01-20/2026-02-01 2026-02-10/2026-03-01",
		definition.PartitionYear:  "../2026-01-01 2026-01-01/2026-01-20 2026-01-20/2026-02-01 2026-02-10/2026-03-01",
		definition.PartitionMonth: "../2026-01-01 2026-01-01/2026-01-20 2026-01-20/2026-02-01 2026-02-10/2026-03-01",
	} {
		o := &dataset{place: &place{encoding: encoding{job: &Job{Def: &definition.Definition{}}, out: definition.Output{Partition: partition}}}}
		var got []string
		for _, p := range o.parts(&reconcile.Snapshot{Windows: windows}) {
			got = append(got, strings.ReplaceAll(p.String(), " 00:00:00", ""))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %s", partition, s)
		}
	}
}

// TestDivideIncremental: parts of an incremental run are smaller, and those that are
// read again are smallest. Windows without a count are measured by what they hold.
func TestDivideIncremental(t *testing.T) {
	older := &reading.Older{}
	window := func(from, to string, n int64, of *reading.Older) *reading.Window {
		return &reading.Window{
			Planned: extract.Planned{Window: extracttest.Window(from, to), Count: extract.Unknown}, Older: of,
			Reading: reading.Reading{IDs: idset.Of(1), Stats: transform.Stats{Rows: n}},
		}
	}
	windows := []*reading.Window{
		window("2026-01-01", "2026-01-05", 150, older), window("2026-01-05", "2026-01-10", 50, older), window("2026-01-10", "2026-01-15", 1, older),
		window("2026-02-01", "2026-02-05", 600, nil), window("2026-02-05", "2026-02-10", 400, nil), window("2026-02-10", "2026-02-15", 1, nil),
	}
	def := &definition.Definition{Extract: definition.Extract{Incremental: true}}
	o := &dataset{place: &place{encoding: encoding{job: &Job{Def: def}, out: definition.Output{}}}}
	parts := o.parts(&reconcile.Snapshot{Windows: windows})
	got := make([]string, 0, len(parts))
	for _, p := range parts {
		got = append(got, strings.ReplaceAll(p.String(), " 00:00:00", ""))
	}
	if s := strings.Join(got, " "); s != "2026-01-01/2026-01-10 2026-01-10/2026-01-15 2026-02-01/2026-02-10 2026-02-10/2026-02-15" {
		t.Error(s)
	}
}

func TestIDsLeaveRejectsOut(t *testing.T) {
	w := &reading.Window{Reading: reading.Reading{IDs: idset.Of(3, 5, 9), Rejects: []transform.Reject{{ResultID: 3}, {ResultID: 9}}, Stats: transform.Stats{Rows: 1, Rejected: 2}}}
	none := &reading.Window{Reading: reading.Reading{IDs: idset.Of(1), Rejects: []transform.Reject{{ResultID: 1}}, Stats: transform.Stats{Rejected: 1}}}
	more := &reading.Window{Reading: reading.Reading{IDs: idset.Of(2, 40), Stats: transform.Stats{Rows: 2}}}
	p := &outputPart{windows: []*reading.Window{none, w, more, {}}}
	if got := p.ids().String(); got != "[2 5 40]" {
		t.Errorf("ids %s", got)
	}
}
