package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

// Several processes may write one checkpoint for one run. What one of them has to tell others
// is an object beside the pieces, a note, under the name of its writer: the plan of windows to
// read, the snapshot once all agrees, and what is staged of it. The processes that read groups
// take over only what earlier tries of their group have left. Others take over everything, as
// a run does that resumes.

// Plan is how a run's windows are divided among processes.
type Plan struct {
	Run    string    `json:"run"` // id of the run
	Groups [][]Share `json:"groups"`
	// Again means that the windows were read before, and did not agree with the counts.
	Again bool `json:"again,omitempty"`
}

// Share is a window of a group.
type Share struct {
	Window load.Range `json:"window"`
	Count  int64      `json:"count"` // by the service, or extract.Unknown
}

// Planned returns the window as the plan has it.
func (s Share) Planned() extract.Planned {
	return extract.Planned{Window: extract.Window{From: s.Window.From.Time, To: s.Window.To.Time}, Count: s.Count}
}

// These are the kinds of notes. The name of a note is its kind, then whose it is.
const (
	NotePlan     = "plan"
	NoteSnapshot = "snapshot"
	NoteStaged   = "staged"
)

func noteName(kind, of string) string { return kind + "-" + of }

// PutNote stores a note as JSON. Begin has been called.
func (c *Checkpoint) PutNote(ctx context.Context, kind, of string, note any) error {
	data, err := json.Marshal(note)
	if err != nil {
		return err
	}
	return c.store.put(ctx, noteName(kind, of), seal(data))
}

// GetNote decodes a note. The error wraps load.ErrNotExist or ErrDamaged if there is none
// that can be used.
func (c *Checkpoint) GetNote(ctx context.Context, kind, of string, into any) error {
	return c.sealed(ctx, noteName(kind, of), into)
}

// Header reads the header. The error wraps load.ErrNotExist if there is none.
func (c *Checkpoint) Header(ctx context.Context) (Header, error) {
	data, err := c.store.get(ctx, headerName, nil)
	if err != nil {
		return Header{}, err
	}
	return decodeHeader(data)
}

// ErrNoPlan means that the checkpoint no longer holds what processes of a run told each
// other. Another run has taken it over or ended it, or an object of it is damaged.
var ErrNoPlan = errors.New("the plan of the run is gone or damaged")

// errTaken is the usual cause of ErrNoPlan.
var errTaken = fmt.Errorf("%w: another run has written to the output since", ErrNoPlan)

// gone gives an error of a missing or damaged object as one that wraps ErrNoPlan.
func (c *Checkpoint) gone(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("%s: %w: %w", c.Place, ErrNoPlan, err)
	case errors.Is(err, load.ErrNotExist):
		return fmt.Errorf("%s: %w", c.Place, errTaken)
	}
	return fmt.Errorf("%s: %w", c.Place, err)
}

// Join opens the checkpoint for a process of a run that others have begun, and decodes a
// note of theirs. It finds the header and no pieces. The error wraps ErrNoPlan if the note
// is gone, or if the checkpoint belongs to another run.
func (c *Checkpoint) Join(ctx context.Context, run, kind, of string, note any) (found *Inherited, err error) {
	c.begun.Store(true) // so that nothing is removed before the run's end
	found = &Inherited{}
	if found.Header, err = c.Header(ctx); err == nil {
		err = c.GetNote(ctx, kind, of, note)
	}
	if err != nil {
		return nil, c.gone(err)
	}
	if !slices.Contains(found.Runs, run) {
		return nil, fmt.Errorf("%s: %w", c.Place, errTaken)
	}
	return found, nil
}

// FindOwn adds the pieces of writers that `of` names to what Join has found. Processes of
// the same run have read them.
func (c *Checkpoint) FindOwn(ctx context.Context, found *Inherited, of func(writer string) bool) error {
	names, err := c.store.list(ctx)
	if err != nil {
		return err
	}
	if err := c.records(ctx, found, names, of); err != nil {
		return err
	}
	if err := c.Verify(ctx, found); err != nil {
		return err
	}
	found.Usable(time.Time{}, 0, func(time.Time) time.Time { return time.Unix(1<<40, 0) })
	return nil
}

// Pieces reads the records of pieces by their names, several at a time. The error wraps
// ErrNoPlan if one is gone.
func (c *Checkpoint) Pieces(ctx context.Context, names []string) ([]Piece, error) {
	all := make([]Piece, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, name := range names {
		group.Go(func() error {
			p, isRecord, ok := pieceOf(name + recordSuffix)
			if !ok || !isRecord {
				return fmt.Errorf("%s: %q is no piece", c.Place, name)
			}
			r, err := c.record(ctx, p)
			if err != nil {
				return c.gone(err)
			}
			if all[i], err = r.piece(p); err != nil {
				return c.gone(fmt.Errorf("%w: %w", ErrDamaged, err))
			}
			return nil
		})
	}
	return all, group.Wait()
}
