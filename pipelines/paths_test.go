package pipelines_test

import (
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// failing is an encoder that stops after some batches, or at its end.
type failing struct {
	after int
	err   error
}

func (f *failing) Write(arrow.RecordBatch) error {
	if f.after--; f.after < 0 {
		return f.err
	}
	return nil
}

func (f *failing) Close() error { return f.err }

// TestEncoderFails for one output; what it staged is dropped.
func TestEncoderFails(t *testing.T) {
	broken := errors.New("cannot encode this")
	for name, create := range map[string]func() (load.Encoder, error){
		"at the beginning":      func() (load.Encoder, error) { return nil, broken },
		"at the first batch":    func() (load.Encoder, error) { return &failing{0, broken}, nil },
		"at the end of a file":  func() (load.Encoder, error) { return &failing{100, broken}, nil },
		"at the second segment": func() (load.Encoder, error) { return &failing{1, broken}, nil },
	} {
		for _, path := range []string{"bad.x", "bad/"} {
			t.Run(name+" of "+path, func(t *testing.T) {
				w := newWorld(t, fourDays())
				o := options()
				o.BuiltIn.Formats = append(o.BuiltIn.Formats, load.Format{
					Name: "bad", Extension: ".x", New: func(io.Writer, *arrow.Schema, load.EncodeOptions) (load.Encoder, error) { return create() },
				})
				_, err := pipelines.Run(t.Context(), w.daily(definition.Output{Path: path, Format: "bad"}, definition.Output{Path: "form1.ndjson", Format: "ndjson"}), o)
				if !errors.Is(err, broken) || !strings.Contains(err.Error(), "bad") {
					t.Errorf("error %v", err)
				}
				w.checkTidy()
				visible := slices.Sorted(maps.Keys(tree(t, w.dir)))
				if want := []string{"form1.codebook.csv", "form1.ndjson", "form1.ndjson.manifest.json", "form1.schema.json"}; !slices.Equal(visible, want) {
					t.Errorf("visible %v", visible)
				}
			})
		}
	}
}

// TestRunsWithSearchesAreNotVerified, nor those that ask for no verification;
// fixed windows then cost no count at all.
func TestRunsWithSearchesAreNotVerified(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*definition.Definition)
		reason string
		rows   int64
		counts int
	}{
		{"search", func(d *definition.Definition) {
			d.Extract.Search = extract.Search{Where: []extract.Criterion{{Column: "1", Operator: extract.OpEquals, Term: "c"}}}
		}, "the service cannot count", 1, 1},
		{"view", func(d *definition.Definition) { d.Extract.View = formservice.AllData }, "the service cannot count", 8, 1},
		{"not asked for", func(d *definition.Definition) { d.Extract.Verify = false }, "the definition says verify: false", 8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, fourDays())
			var expected []int64
			o := options()
			o.Progress = func(p pipelines.Progress) { expected = append(expected, p.Expected) }
			def := w.daily(fileAndDays()...)
			c.change(def)
			report := w.runBy(def, o)
			m := readManifest(t, filepath.Join(w.path("days"), load.ManifestName))
			for _, v := range []*load.Verified{report.Forms[0].Verified, &m.Verified} {
				if v.Match || v.Counted != 0 || v.Extracted != c.rows || !strings.HasPrefix(v.Reason, c.reason) {
					t.Errorf("verified %+v", v)
				}
			}
			if n := w.service.Counts()[formservice.TransactionCount]; n != c.counts || m.Rows != c.rows {
				t.Errorf("%d counts, %d rows", n, m.Rows)
			}
			if slices.ContainsFunc(expected, func(n int64) bool { return n != extract.Unknown }) {
				t.Errorf("expected %v", expected)
			}
		})
	}
}
