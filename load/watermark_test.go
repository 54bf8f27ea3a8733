package load_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
)

// A watermark is set back, or removed, and nothing else of the dataset changes.
func TestResetWatermark(t *testing.T) {
	s := newShop(t)
	if _, err := load.ResetWatermark(t.Context(), s.d, load.WallTime{}); !errors.Is(err, load.ErrNotExist) {
		t.Errorf("without a manifest: %v", err)
	}
	s.must(s.run("run1", days{1: "a", 2: "b"}, nil))
	m, version, err := load.ReadManifest(t.Context(), s.d, load.ManifestName)
	s.must(err)
	now := wall("2026-02-01 00:00:00")
	m.Watermark = now
	data, err := m.Encode()
	s.must(err)
	s.must(s.d.Put(t.Context(), load.ManifestName, data, version))
	for _, to := range []load.WallTime{now, wall("2026-01-02 03:04:05"), {}, {}} {
		before, err := load.ResetWatermark(t.Context(), s.d, to)
		if err != nil || before != now {
			t.Fatalf("reset to %s gives %s, %v; it was %s", to, before, err, now)
		}
		now, m.Watermark = to, to
		data, err := m.Encode()
		s.must(err)
		if got, _, err := s.d.Get(t.Context(), load.ManifestName); err != nil || string(got) != string(data) {
			t.Fatalf("the manifest is %s, %v, want %s", got, err, data)
		}
		s.holds("run1", days{1: "a", 2: "b"})
	}
	s.must(s.run("run2", days{1: "a"}, nil))
}

// A watermark is not set back over a recorded commit.
func TestResetWatermarkOverARecord(t *testing.T) {
	s := newShop(t)
	s.must(s.run("run1", days{1: "a"}, nil))
	if err := s.run("run2", days{1: "b"}, killBefore(load.StepSupersede, 1)); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	if _, err := load.ResetWatermark(t.Context(), s.d, load.WallTime{}); !errors.Is(err, load.ErrConflict) {
		t.Errorf("while a commit is recorded: %v", err)
	}
	_, err := load.Recover(t.Context(), s.d, "", nil, false)
	s.must(err)
	_, err = load.ResetWatermark(t.Context(), s.d, load.WallTime{})
	s.must(err)
}

// overtaken is a store whose manifest someone else writes after each reading.
type overtaken struct {
	*local.Destination
	write func()
}

func (o overtaken) Get(ctx context.Context, name string) ([]byte, string, error) {
	data, version, err := o.Destination.Get(ctx, name)
	if name == load.ManifestName {
		o.write()
	}
	return data, version, err
}

// A watermark is not set over what someone else wrote meanwhile.
func TestResetWatermarkIsOvertaken(t *testing.T) {
	s := newShop(t)
	s.marked("run1", "2026-03-01 00:00:00")
	d := overtaken{s.d, func() { s.marked("run2", "2026-04-01 00:00:00") }}
	before, err := load.ResetWatermark(t.Context(), d, load.WallTime{})
	if !errors.Is(err, load.ErrConflict) || before != wall("2026-03-01 00:00:00") {
		t.Errorf("got %v, %v", before, err)
	}
	now, _, err := load.ReadManifest(t.Context(), s.d, load.ManifestName)
	if err != nil || now.RunID != "run2" || now.Watermark != wall("2026-04-01 00:00:00") {
		t.Errorf("the manifest is %+v, %v", now, err)
	}
}

// marked writes the manifest of a run with a watermark.
func (s shop) marked(run, watermark string) {
	s.t.Helper()
	m := manifest(run)
	if watermark != "" {
		m.Watermark = wall(watermark)
	}
	data, err := m.Encode()
	s.must(err)
	s.must(s.d.Put(s.t.Context(), load.ManifestName, data, load.AnyVersion))
}

// What is known of changes goes only with the whole watermark: the next run reads
// everything again then. Otherwise it would forget what changed.
func TestResetWatermarkAndChanges(t *testing.T) {
	for _, to := range []load.WallTime{{}, wall("2026-01-03 00:00:00")} {
		s := newShop(t)
		m := manifest("run1")
		m.Watermark, m.Changes = wall("2026-03-01 00:00:00"), goldenChanges()
		data, err := m.Encode()
		s.must(err)
		s.must(s.d.Put(t.Context(), load.ManifestName, data, load.AnyVersion))
		if _, err := load.ResetWatermark(t.Context(), s.d, to); err != nil {
			t.Fatal(err)
		}
		now, _, err := load.ReadManifest(t.Context(), s.d, load.ManifestName)
		s.must(err)
		if now.Watermark != to || (now.Changes == nil) != to.IsZero() || now.Changes != nil && len(now.Changes.Later) != 1 {
			t.Errorf("reset to %s: watermark %s, changes %+v", to, now.Watermark, now.Changes)
		}
	}
}

func TestResetWatermarkErrors(t *testing.T) {
	for name, c := range map[string]struct {
		watermark string
		object    string // overwritten
		want      string
	}{
		"a later time": {
			watermark: "2026-01-02 00:00:00",
			want: "cannot set the watermark of the dataset to 2026-01-03 00:00:00: results were read only up to 2026-01-02 00:00:00, " +
				"so that those after it would be missing",
		},
		"none before":        {want: "cannot set the watermark of the dataset to 2026-01-03 00:00:00: it has no watermark yet,"},
		"a damaged manifest": {object: load.ManifestName, want: "_manifest.json is damaged, or not from this version of formetl"},
		"a damaged record":   {object: load.ControlFolder + "/" + load.IntentName, want: "where a run that was stopped noted what is left to do"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.marked("run1", c.watermark)
			if c.object != "" {
				s.must(s.d.Put(t.Context(), c.object, []byte("{"), load.AnyVersion))
			}
			_, before, err := s.d.Get(t.Context(), load.ManifestName)
			s.must(err)
			_, err = load.ResetWatermark(t.Context(), s.d, wall("2026-01-03 00:00:00"))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, after, err := s.d.Get(t.Context(), load.ManifestName); err != nil || after != before {
				t.Errorf("the manifest was written: %v", err)
			}
		})
	}
}
