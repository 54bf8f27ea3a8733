package states

import (
	"time"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/maintain"
)

// JSON is what state show --json prints. What does not apply is null.
type JSON struct {
	Pipeline   string          `json:"pipeline"`
	Definition string          `json:"definition"`
	Mode       string          `json:"mode"`
	Timezone   string          `json:"timezone"` // of watermarks and ranges
	Forms      []formStateJSON `json:"forms"`
	Budget     struct {
		PerMinute    int       `json:"per_minute"` // 0: no budget
		BookedMinute *int      `json:"booked_minute"`
		PerDay       int       `json:"per_day"` // 0: no budget
		BookedDay    *int      `json:"booked_day"`
		Next         time.Time `json:"next_request"` // not before
	} `json:"budget"`
	// Checkpoints are what runs that ended early had read.
	Checkpoints []checkpointJSON `json:"checkpoints"`
}

type formStateJSON struct {
	Form    string            `json:"form"`
	Next    *nextJSON         `json:"next"` // null where runs are not incremental, or an output is unknown
	Outputs []outputStateJSON `json:"outputs"`
}

type nextJSON struct {
	From load.WallTime `json:"from"` // null: the first result
}

type outputStateJSON struct {
	Path         string        `json:"path"`
	Dataset      bool          `json:"dataset"`
	PerRun       bool          `json:"per_run"` // another path for each run
	Watermark    load.WallTime `json:"watermark"`
	WatermarkAge *int64        `json:"watermark_age_seconds"`
	Changes      *changesJSON  `json:"changes"` // null where the last run did not tell
	lastCommitJSON
	UnderWay  *underWayJSON `json:"under_way"`
	Recorded  *string       `json:"recorded_commit"` // the run whose commit the next run finishes
	Leftovers []Leftover    `json:"leftovers"`
	// UnlistedParts end the next run with 73; DamagedParts are made again by it.
	UnlistedParts []string `json:"unlisted_parts"`
	DamagedParts  []string `json:"damaged_parts"`
	Error         string   `json:"error,omitempty"`
}

// changesJSON says how the last run found the results that had changed.
type changesJSON struct {
	Method  string        `json:"method"`   // changes or lookback
	Reason  *string       `json:"reason"`   // why the service could not be asked
	KnownTo load.WallTime `json:"known_to"` // by the service's clock; null: not known
}

type lastCommitJSON struct {
	RunID     *string     `json:"run_id"`
	CreatedAt *time.Time  `json:"created_at"`
	Range     *load.Range `json:"range"`
	Rows      *int64      `json:"rows"`
	Parts     *int        `json:"parts"`
}

type underWayJSON struct {
	load.Holder            // without a run_id where the lease cannot be read
	Since       *time.Time `json:"since"` // in place of the holder's
}

type checkpointJSON struct {
	Form     string    `json:"form"`
	RunID    string    `json:"run_id"`
	OpenedAt time.Time `json:"opened_at"`
	Windows  int       `json:"windows"`
	Rows     int64     `json:"rows"`
	Bytes    int64     `json:"bytes"`
}

// Of returns the state of a pipeline as JSON.
func Of(r *maintain.StateReport) JSON {
	s := JSON{
		Pipeline: r.Pipeline, Definition: r.Definition.File, Mode: ModeOf(r), Timezone: r.Zone.String(),
		Forms: []formStateJSON{}, Checkpoints: []checkpointJSON{},
	}
	s.Budget.PerMinute, s.Budget.PerDay, s.Budget.Next = r.Budget.PerMinute, r.Budget.PerDay, whole(r.Budget.Next)
	if r.Budget.PerMinute > 0 {
		s.Budget.BookedMinute = &r.Budget.Minute
	}
	if r.Budget.PerDay > 0 {
		s.Budget.BookedDay = &r.Budget.Day
	}
	for _, f := range r.Forms {
		form := formStateJSON{Form: f.Form, Outputs: []outputStateJSON{}}
		if f.Next != nil {
			form.Next = &nextJSON{From: *f.Next}
		}
		for _, out := range f.Outputs {
			form.Outputs = append(form.Outputs, outputOf(r, out))
		}
		s.Forms = append(s.Forms, form)
	}
	for _, left := range r.Checkpoints {
		s.Checkpoints = append(s.Checkpoints, checkpointJSON{
			Form: left.Form, RunID: left.RunID, OpenedAt: whole(left.OpenedAt), Windows: left.Windows, Rows: left.Rows, Bytes: left.Bytes,
		})
	}
	return s
}

func outputOf(r *maintain.StateReport, out *maintain.OutputState) outputStateJSON {
	j := outputStateJSON{
		Path: out.Path, Dataset: out.Dataset, PerRun: out.PerRun, Watermark: out.Watermark(), Leftovers: []Leftover{}, UnlistedParts: []string{}, DamagedParts: []string{},
	}
	if out.Err != nil {
		j.Error = out.Err.Error()
	}
	if w := out.Watermark(); !w.IsZero() {
		j.WatermarkAge = new(int64(r.Now.Sub(show.FirstInstant(w, r.Zone)) / time.Second))
	}
	if m := out.Manifest; m != nil {
		j.lastCommitJSON = lastCommitJSON{&m.RunID, &m.CreatedAt, &m.Range, &m.Rows, new(len(m.Parts))}
		if c := m.Changes; c != nil {
			j.Changes = &changesJSON{Method: c.Method, KnownTo: c.KnownTo}
			if c.Reason != "" {
				j.Changes.Reason = &c.Reason
			}
		}
	}
	if h := out.Holder; h != nil {
		j.UnderWay = &underWayJSON{*h, wholeOrNull(h.Since)}
	}
	if out.Pending != "" {
		j.Recorded = &out.Pending
	}
	for _, o := range out.Inventory.Unlisted {
		j.UnlistedParts = append(j.UnlistedParts, o.Name)
	}
	for _, p := range out.Inventory.Damaged {
		j.DamagedParts = append(j.DamagedParts, p.Path)
	}
	for _, l := range out.Leftovers {
		j.Leftovers = append(j.Leftovers, leftoverOf(l))
	}
	return j
}

// whole is a time in UTC at whole seconds.
func whole(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// wholeOrNull is whole, and null for the zero time.
func wholeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(whole(t))
}
