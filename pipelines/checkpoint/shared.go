package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

// Several processes may write one checkpoint for one run. The first one plans, and keeps the
// plan with it. The others read groups of the plan's windows. Each has a Writer of its own,
// and takes over only what earlier tries of its group have left. The last one takes over
// everything, as a run does that resumes.

// Plan is how a run's windows are divided among processes.
type Plan struct {
	Run    string    `json:"run"` // id of the run
	Groups [][]Share `json:"groups"`
	// Ordered means that windows may be too large for memory, and are read in the order of ids.
	Ordered bool `json:"ordered,omitempty"`
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

// planName is the name of the object that holds a Plan.
const planName = "plan"

// KeepPlan stores the plan. Begin has been called.
func (c *Checkpoint) KeepPlan(ctx context.Context, p Plan) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return c.store.put(ctx, planName, seal(data))
}

// Header reads the header. The error wraps load.ErrNotExist if there is none.
func (c *Checkpoint) Header(ctx context.Context) (Header, error) {
	data, err := c.store.get(ctx, headerName, nil)
	if err != nil {
		return Header{}, err
	}
	return decodeHeader(data)
}

// ErrNoPlan means that the checkpoint no longer holds the plan of a run. Another run has
// taken it over or ended it.
var ErrNoPlan = errors.New("the plan is gone: another run has written to the output since")

// Join opens the checkpoint for a process that reads a group of a run's windows. It
// returns the plan, and what writers that `of` names have read. The error wraps ErrNoPlan
// if the checkpoint belongs to another run.
func (c *Checkpoint) Join(ctx context.Context, run string, group int, of func(writer string) bool) (plan Plan, found *Inherited, err error) {
	c.begun.Store(true) // this process never removes it
	found = &Inherited{}
	if found.Header, err = c.Header(ctx); err == nil {
		err = c.sealed(ctx, planName, &plan)
	}
	switch {
	case errors.Is(err, load.ErrNotExist):
		return plan, nil, fmt.Errorf("%s: %w", c.Place, ErrNoPlan)
	case err != nil:
		return plan, nil, fmt.Errorf("%s: %w", c.Place, err)
	case plan.Run != run || !slices.Contains(found.Runs, run) || group >= len(plan.Groups):
		return plan, nil, fmt.Errorf("%s: %w", c.Place, ErrNoPlan)
	}
	names, err := c.store.list(ctx)
	if err != nil {
		return plan, nil, err
	}
	if err := c.records(ctx, found, names, of); err != nil {
		return plan, nil, err
	}
	if err := c.Verify(ctx, found); err != nil {
		return plan, nil, err
	}
	found.Usable(time.Time{}, 0, func(time.Time) time.Time { return time.Unix(1<<40, 0) }) // the same run read them
	return plan, found, nil
}
