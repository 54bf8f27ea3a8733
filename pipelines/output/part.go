package output

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
)

// partTarget is how many results consecutive windows may hold together, by their
// counts, to share a part. Incremental runs make smaller parts (reading.PartTarget).
const partTarget = 1_000_000

// outputPart is one part of a dataset that the run writes, or a whole file. Its windows
// share an object.
type outputPart struct {
	windows  []*reading.Window
	from, to time.Time
	undated  bool

	prepared *load.PreparedPart // the part's object; nil if it has neither rows nor rejects
}

// String returns the part's span of time as text for the object's footer and dead letters.
func (p *outputPart) String() string {
	if p.undated {
		return reading.UndatedName
	}
	return extract.Window{From: p.from, To: p.to}.String()
}

// parts divides the windows of a snapshot into parts. Consecutive windows within a partition
// share a part until it holds partTarget results. An incremental run makes smaller parts
// (reading.PartTarget), because later runs read a part again as a whole; older parts that it
// reads again are divided into even smaller ones (reading.StaleTarget). A window that is empty
// by its count is in no part.
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

// stageParts stages the parts as objects, several at a time, and notes those that were
// prepared.
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
		if part.prepared != nil {
			p.prepared = append(p.prepared, part.prepared.Prepared)
		}
	}
	return err
}

// prepare stages a part as an object. A part that has rejects and no rows is an empty
// object, so that the manifest's parts account for all results. In a child output
// there is no such part, because its rows do not stand for results. A file is there
// even if it holds no rows.
func (p *place) prepare(ctx context.Context, part *outputPart, columns []schemas.Column) (err error) {
	name := p.Scope
	if p.out.Dataset() {
		name = load.PartName(load.PartKey{
			DT: load.DTValue(string(p.out.Partition), part.to), From: part.from, To: part.to, Undated: part.undated,
			Generation: p.generation, Extension: p.extension(),
		})
	}
	defer func() {
		if err != nil && p.out.Dataset() && !strings.Contains(err.Error(), name) {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}()
	var rejected int64
	if !p.out.Exploded() {
		rejected = rejectsOf(part.windows)
	}
	var upload load.Upload // nil before there is anything to write
	var object encodedObject
	begin := func() (err error) {
		if upload, err = p.dest.Stage(ctx, p.job.RunID, name); err == nil {
			object, err = p.object(upload, columns, part)
		}
		return err
	}
	defer func() {
		if err != nil && upload != nil {
			object.discard()
			_ = upload.Abort() // the first error is returned
		}
	}()
	if rejected > 0 || !p.out.Dataset() {
		if err := begin(); err != nil {
			return err
		}
	}
	var rows int64
	err = p.each(ctx, columns, part.windows, func(b arrow.RecordBatch) error {
		if b.NumRows() == 0 {
			return nil
		}
		if upload == nil {
			if err := begin(); err != nil {
				return err
			}
		}
		rows += b.NumRows()
		return object.Write(b)
	})
	if err != nil || upload == nil {
		return err
	}
	if err := object.Close(); err != nil {
		return err
	}
	p.job.At(PointStaged)
	prepared, err := upload.Prepare(ctx)
	if err != nil {
		return err
	}
	p.job.At(PointPrepared)
	made := load.Part{
		Path: name, From: load.Wall(part.from), To: load.Wall(part.to), Undated: part.undated,
		Rows: rows, Rejected: rejected, Bytes: prepared.Bytes, SHA256: prepared.SHA256,
	}
	if rows > 0 {
		// The set of ids is made again for the commit. If it were kept, it would take two
		// bytes for each result while the other parts are encoded.
		ids := part.ids()
		if p.out.Dataset() {
			made.IDs = idset.Sum(idset.Encode(ids))
		}
		made.MinID, made.MaxID = ids.Min(), ids.Max()
		made.Unfetched = p.out.HasFileRows() && p.out.Dataset() && ids.Intersects(p.job.Files.Unfetched())
	}
	part.prepared = &load.PreparedPart{Part: made, Prepared: prepared}
	return nil
}

// ids returns the ids of the results in the part's windows, without rejected ones. In a child
// output the rows are taken from these results.
func (p *outputPart) ids() idset.Set {
	sets := make([]idset.Set, len(p.windows))
	for i, w := range p.windows {
		sets[i] = w.RowIDs()
	}
	return idset.Union(sets...)
}

// rejectsOf returns how many results of the windows were rejected.
func rejectsOf(windows []*reading.Window) (n int64) {
	for _, w := range windows {
		n += w.Stats.Rejected
	}
	return n
}

// last returns the last second of a window that ends at to.
func last(to time.Time) time.Time { return to.Add(-time.Second) }
