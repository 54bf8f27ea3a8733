package checkpoint

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/load"
)

// KeepFor is how long a checkpoint is kept after its last change, which is
// longer than an outage or a weekend. It holds personal data, and nothing else
// would remove it once the pipeline is gone.
const KeepFor = 7 * 24 * time.Hour

// beginning is how long a checkpoint without a header is left alone, because a run on another host
// may be about to take its lease.
const beginning = time.Hour

// Unfinished describes, for people, the checkpoint of a run that ended early.
type Unfinished struct {
	Header
	Windows int // completely read windows
	Rows    int64
	Bytes   int64

	c *Checkpoint
}

// FindUnfinished returns the checkpoints of forms that runs left, oldest first, also those for other
// outputs than the definition has now. Of one whose header is damaged, the run is "unknown", and
// the next run removes it. It skips those that a run holds. It changes nothing.
func FindUnfinished(ctx context.Context, s State, pipeline string, forms ...string) (left []Unfinished, err error) {
	var all []folder
	for _, form := range forms {
		found, err := find(ctx, s, folderName+formKey(pipeline, form))
		if err != nil {
			return nil, err
		}
		for i := range found {
			found[i].form = form
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	holders, err := s.Holders(ctx)
	if err != nil {
		return nil, s.Fail(err)
	}
	for _, f := range all {
		c := checkpointAt(s, f.name)
		if slices.ContainsFunc(holders, func(h load.ScopedHolder) bool { return h.Scope == c.prefix+headerName }) {
			continue
		}
		found, err := c.Found(ctx)
		if _, unreadable := errors.AsType[*StateError](err); unreadable {
			return nil, err
		}
		if found == nil || errors.Is(err, ErrNoHeader) {
			continue // there is nothing, or Sweep removes it
		}
		l := Unfinished{Header: found.Header, c: c}
		if err != nil {
			l.Header, l.Bytes = Header{RunID: "unknown", Form: f.form, OpenedAt: f.changed}, f.bytes
		}
		for _, chain := range chains(found.all) {
			if chain.Ended() {
				l.Windows++
			}
			for _, p := range chain.Pieces {
				l.Rows += p.Stats.Rows
				for _, s := range p.streams {
					l.Bytes += s.Bytes
				}
			}
		}
		left = append(left, l)
	}
	slices.SortStableFunc(left, func(a, b Unfinished) int { return a.OpenedAt.Compare(b.OpenedAt) })
	return left, nil
}

// Discard removes the checkpoint. If a run holds it by now, Discard returns false.
func (l Unfinished) Discard(ctx context.Context, h load.Holder) (discarded bool, err error) {
	return discard(ctx, l.c, h)
}

func discard(ctx context.Context, c *Checkpoint, h load.Holder) (discarded bool, err error) {
	err = c.take(ctx, h)
	if _, held := errors.AsType[*load.HeldError](err); held {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, c.Close(ctx, false)
}

// Sweep removes checkpoints that no run holds and no run may take over. These were not changed for
// longer than KeepFor, or have no header. It returns their number. With dryRun it only counts
// them. The error is an *UnreachedError if a bucket cannot be listed.
func Sweep(ctx context.Context, s State, h load.Holder, dryRun bool) (swept int, err error) {
	all, err := find(ctx, s, folderName)
	switch {
	case err != nil && s.Remote():
		return 0, &UnreachedError{err}
	case err != nil:
		return 0, err
	}
	for _, f := range all {
		keep := KeepFor
		if !f.hasHeader {
			keep = beginning
		}
		gone := !f.changed.IsZero() && time.Since(f.changed).Abs() > keep // a wrong clock writes times of the future
		if gone && !dryRun {
			var failed error
			gone, failed = discard(ctx, checkpointAt(s, f.name), h)
			err = errors.Join(err, failed)
		}
		if gone {
			swept++
		}
	}
	return swept, err
}

// folder is a checkpoint as a listing shows it.
type folder struct {
	name      string
	hasHeader bool      // the checkpoint has a header, so it can be taken over
	changed   time.Time // when the last of its objects was written
	bytes     int64
	form      string // set by FindUnfinished
}

// find lists the checkpoints whose objects' names begin with a prefix.
func find(ctx context.Context, s State, prefix string) (all []folder, err error) {
	objects, err := s.List(ctx, prefix)
	if err != nil || len(objects) == 0 {
		return nil, s.Fail(err)
	}
	for _, o := range objects {
		name, object, ok := strings.Cut(strings.TrimPrefix(o.Name, folderName), "/")
		if !ok {
			continue
		}
		if len(all) == 0 || all[len(all)-1].name != name {
			all = append(all, folder{name: name})
		}
		f := &all[len(all)-1]
		f.hasHeader = f.hasHeader || object == headerName
		f.bytes += o.Bytes
		if o.Changed.After(f.changed) {
			f.changed = o.Changed
		}
	}
	return all, nil
}
