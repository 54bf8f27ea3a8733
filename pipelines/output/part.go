package output

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
)

// partTarget is how many results consecutive windows may hold together, by their
// counts, to share a part. Incremental runs make smaller ones (reading.PartTarget).
const partTarget = 1_000_000

// outputPart is one part of a dataset that the run writes, or a whole file. Its windows
// share an object.
type outputPart struct {
	windows  []*reading.Window
	from, to time.Time
	undated  bool

	prepared []load.PreparedPart // its objects; none if there are neither rows nor rejects
	spans    []span              // of the results in these objects
}

// span is the results of a part with numbers from `from` up to `to`.
type span struct{ from, to int64 }

// String returns the part's window as text for the footer.
func (p *outputPart) String() string {
	if p.undated {
		return reading.UndatedName
	}
	return extract.Window{From: p.from, To: p.to}.String()
}

// parts returns the parts of a snapshot. Consecutive windows within a partition share
// a part until it is large. Parts that an incremental run reads again are smaller. A
// window that is empty by its count is in no part.
func (o *dataset) parts(s *reconcile.Snapshot) (parts []*outputPart) {
	unit := o.out.Partition.Unit()
	most := func(w *reading.Window) int64 {
		switch {
		case !o.job.Def.Extract.Incremental:
			return partTarget
		case w.Older != nil:
			return reading.StaleTarget
		}
		return reading.PartTarget
	}
	var at *outputPart
	var before *reading.Window
	var rows int64
	for _, w := range s.Windows {
		p := w.Planned
		if w.Undated != nil {
			parts, at = append(parts, &outputPart{windows: []*reading.Window{w}, undated: true}), nil
			continue
		}
		if p.Count == 0 && w.IDs == nil {
			at = nil
			continue
		}
		same := at != nil && w.Older == before.Older && at.to.Equal(p.Window.From) &&
			(unit == extract.UnitNone || unit.Start(last(at.to)).Equal(unit.Start(last(p.Window.To))))
		n := p.Count
		if n == extract.Unknown {
			n = w.Results()
		}
		if !same || p.Window.From.Equal(s.Interval.Next) || rows+n > most(w) && rows > 0 {
			at, rows = &outputPart{from: p.Window.From}, 0
			parts = append(parts, at)
		}
		at.windows = append(at.windows, w)
		at.to = p.Window.To
		rows += n
		before = w
	}
	return parts
}

// stageParts stages the parts, several at a time.
func (p *place) stageParts(ctx context.Context, parts []*outputPart, columns []schemas.Column) error {
	group, encoding := errgroup.WithContext(ctx)
	group.SetLimit(cap(p.job.Encoders))
	for _, part := range parts {
		group.Go(func() error {
			return p.job.Encoders.Hold(encoding, func() error { return p.prepare(encoding, part, columns) })
		})
	}
	err := group.Wait()
	for _, part := range parts {
		for _, object := range part.prepared {
			p.prepared = append(p.prepared, object.Prepared)
		}
	}
	return err
}

// prepare stages a part as one object. It uses several objects if one would be larger than
// the destination allows for a dataset. A part that has rejects and no rows is an empty
// object, so that the manifest's parts account for all results. In a child output
// there is no such part, because its rows do not stand for results. A file is there
// even if it holds no rows.
func (p *place) prepare(ctx context.Context, part *outputPart, columns []schemas.Column) error {
	s := &partStage{p: p, part: part, columns: columns}
	if l, ok := p.dest.(load.Limiter); ok && p.out.Dataset() {
		s.most = l.MaxObjectBytes() / 4 * 3 // encoders write a row group and a footer later
	}
	err := p.each(ctx, columns, part.windows, func(b arrow.RecordBatch, results int64) error { return s.write(ctx, b, results) })
	var rejected int64
	if !p.out.Exploded() {
		rejected = rejectsOf(part.windows)
	}
	if needed := rejected > 0 || !p.out.Dataset(); err == nil && needed && s.upload == nil && len(part.prepared) == 0 {
		err = s.begin(ctx)
	}
	if err == nil {
		err = s.end(ctx)
	}
	if err != nil {
		s.abort()
		return err
	}
	if len(part.prepared) > 0 {
		part.prepared[0].Part.Rejected = rejected
	}
	return nil
}

// rejectsOf returns how many results of the windows were rejected.
func rejectsOf(windows []*reading.Window) (n int64) {
	for _, w := range windows {
		n += w.Stats.Rejected
	}
	return n
}

// partStage stages the objects of a part one after another.
type partStage struct {
	p       *place
	part    *outputPart
	columns []schemas.Column
	most    int64       // bytes after which the next object begins, 0 for no limit
	upload  load.Upload // nil between two objects
	counted *countingWriter
	object  encodedObject
	name    string
	rows    int64 // rows in the object
	results int64 // results in the object, including those without a row in a child output
	before  int64 // results of the objects before this one
}

// write appends a batch of rows, which come from the given number of results.
func (s *partStage) write(ctx context.Context, b arrow.RecordBatch, results int64) error {
	if b.NumRows() == 0 {
		s.results += results
		return nil
	}
	if even := (s.before+s.results)%resultsAtOnce == 0; even && s.upload != nil && s.most > 0 && s.counted.n >= s.most {
		if err := s.end(ctx); err != nil {
			return err
		}
	}
	if s.upload == nil {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	s.rows += b.NumRows()
	s.results += results
	return s.failed(s.object.Write(b))
}

func (s *partStage) begin(ctx context.Context) error {
	s.name = s.p.nameOf(s.part, len(s.part.prepared))
	upload, err := s.p.dest.Stage(ctx, s.p.job.RunID, s.name)
	if err != nil {
		return err
	}
	s.upload, s.counted = upload, &countingWriter{w: upload}
	s.object, err = s.p.object(s.counted, s.columns, s.part)
	return s.failed(err)
}

// end finishes and prepares the object that is being written.
func (s *partStage) end(ctx context.Context) error {
	if s.upload == nil {
		return nil
	}
	if err := s.object.Close(); err != nil {
		return s.failed(err)
	}
	s.p.job.At(PointStaged)
	prepared, err := s.upload.Prepare(ctx)
	if err != nil {
		return s.failed(err)
	}
	s.p.job.At(PointPrepared)
	p := s.part
	part := load.Part{
		Path: s.name, From: load.Wall(p.from), To: load.Wall(p.to), Undated: p.undated,
		Rows: s.rows, Bytes: prepared.Bytes, SHA256: prepared.SHA256,
	}
	if s.rows > 0 {
		// The set is made again for the commit. It would take two bytes for each result
		// while the other parts are encoded.
		ids := idsBetween(p.windows, s.before, s.before+s.results)
		if s.p.out.Dataset() {
			part.IDs = load.SumIDs(load.EncodeIDs(ids))
		}
		part.MinID, part.MaxID = ids.Min(), ids.Max()
	}
	p.prepared, p.spans = append(p.prepared, load.PreparedPart{Part: part, Prepared: prepared}), append(p.spans, span{s.before, s.before + s.results})
	s.before, s.rows, s.results, s.upload = s.before+s.results, 0, 0, nil
	return nil
}

func (s *partStage) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

func (s *partStage) abort() {
	if s.upload != nil {
		s.object.discard()
		_ = s.upload.Abort() // the caller reports the first error
	}
}

// idsBetween returns the ids of the results with numbers from `from` up to
// `to`. Results are numbered in the order in which the windows are written.
func idsBetween(windows []*reading.Window, from, to int64) load.IDs {
	var sets []load.IDs
	at := int64(0)
	for _, w := range windows {
		n := w.Stats.Rows
		lo, hi := max(from-at, 0), min(to-at, n)
		if at += n; lo < hi {
			sets = append(sets, w.RowIDs(lo, hi))
		}
	}
	return load.UnionOf(sets...)
}

// nameOf returns the name of a part's object with number n.
func (p *place) nameOf(part *outputPart, n int) string {
	if !p.out.Dataset() {
		return p.Scope
	}
	return load.PartName(load.PartKey{
		DT: load.DTValue(string(p.out.Partition), part.to), From: part.from, To: part.to, Undated: part.undated,
		Generation: p.generation, N: n, Extension: p.extension(),
	})
}

// last returns the last second of a window that ends at to.
func last(to time.Time) time.Time { return to.Add(-time.Second) }
