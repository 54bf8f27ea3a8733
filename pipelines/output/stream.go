package output

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
)

// Stream writes rows to the open outputs of a set as they come, before anybody knows how
// many there are. The outputs are files and standard output. preview has the columns. rows
// calls its argument with each batch. Commit then takes a reconcile.Streamed snapshot of
// the window w, which has what rows has read.
func Stream(ctx context.Context, s *Set, preview *reconcile.Snapshot, w *reading.Window, rows func(emit func(arrow.RecordBatch) error) error) error {
	var open []*flow
	defer func() {
		for _, f := range open {
			f.abort()
		}
	}()
	for _, t := range s.live() {
		f, err := newFlow(ctx, t.out, preview)
		if err != nil {
			return t.out.at().named(err)
		}
		open = append(open, f)
	}
	err := rows(func(b arrow.RecordBatch) error {
		for _, f := range open {
			if err := f.write(b); err != nil {
				return err
			}
		}
		return nil
	})
	for _, f := range open {
		if err == nil {
			err = f.end(ctx, w)
		}
	}
	return err
}

// flow is an output that rows are written to as they come.
type flow struct {
	p       *place
	stdout  *stream     // nil for a file
	upload  load.Upload // nil for standard output, and once it has ended
	counted *countingWriter
	object  encodedObject
	columns []schemas.Column
	rows    int64
}

func newFlow(ctx context.Context, out output, preview *reconcile.Snapshot) (*flow, error) {
	f := &flow{p: out.at()}
	f.p.snapshot = preview
	var err error
	if f.columns, err = f.p.shown(nil, nil); err != nil {
		return nil, err
	}
	for _, c := range f.columns {
		if c.ListAs == schemas.ListColumns {
			return nil, &definition.UnsupportedError{What: fmt.Sprintf("a column for each choice of %s, before all results are read,", c.Name), Remedy: "write list_as: joined or json, or leave --limit out"}
		}
	}
	if f.stdout, _ = out.(*stream); f.stdout != nil {
		f.counted, f.p.flowing = &countingWriter{w: stdoutWriter{f.p.job.Stdout}}, true
	} else {
		if f.upload, err = f.p.dest.Stage(ctx, f.p.job.RunID, f.p.Scope); err != nil {
			return nil, err
		}
		f.counted = &countingWriter{w: f.upload}
	}
	f.object, err = f.p.object(f.counted, f.columns, preview.Interval.Given)
	return f, err
}

func (f *flow) write(b arrow.RecordBatch) error {
	b.Retain() // conform releases it
	err := f.p.conform(b, schemas.ArrowSchema(f.columns), func(b arrow.RecordBatch, _ int64) error {
		f.rows += b.NumRows()
		return f.object.Write(b)
	})
	return f.p.named(err)
}

// end finishes the object. That of a file is staged, and Commit takes it as if it had
// been staged ahead.
func (f *flow) end(ctx context.Context, w *reading.Window) error {
	if err := f.object.Close(); err != nil {
		return f.p.named(err)
	}
	f.object.Encoder = nil
	if f.stdout != nil {
		f.stdout.written = &Report{Rows: f.rows, Parts: 1, Bytes: f.counted.n}
		return nil
	}
	prepared, err := f.upload.Prepare(ctx)
	if err != nil {
		return f.p.named(err)
	}
	f.upload = nil
	given := f.p.snapshot.Interval.Given
	u := &unit{windows: []*reading.Window{w}, part: &outputPart{
		windows: []*reading.Window{copyOf(w)}, from: given.From, to: given.To,
		prepared: []load.PreparedPart{{Part: load.Part{Rows: f.rows}, Prepared: prepared}},
	}}
	u.columns, err = f.p.described(f.columns)
	f.p.early = append(f.p.early, u)
	return err
}

// abort ends what end did not.
func (f *flow) abort() {
	if f.object.Encoder != nil {
		f.object.discard()
	}
	if f.upload != nil {
		_ = f.upload.Abort() // the caller reports the first error
	}
}
