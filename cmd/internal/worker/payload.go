package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
)

// Source says which definition a workflow runs. Workers read the file themselves.
type Source struct {
	// Path is the definition's file, with slashes, in the folder of the workers.
	Path string `json:"path"`
	// Variables are the values of ${var:NAME} by name.
	Variables map[string]string `json:"variables,omitempty"`
}

// PipelineInput is what a Pipeline workflow is started with.
type PipelineInput struct {
	Source Source   `json:"source"`
	Forms  []string `json:"forms,omitempty"` // only these of the definition; empty is all
	// GroupRequests is about how many requests an activity sends to read its group. 0 is
	// the default of package pipelines.
	GroupRequests int `json:"group_requests,omitempty"`

	// The workflow goes on with these when it begins a new history.
	Left  []string  `json:"left,omitempty"` // forms that are not begun
	Ended []FormEnd `json:"ended,omitempty"`
}

// PipelineEnd is what a Pipeline workflow did.
type PipelineEnd struct {
	Forms []FormEnd `json:"forms"`
}

// FormEnd says how the run of a form ended.
type FormEnd struct {
	Form     string        `json:"form"`
	RunID    string        `json:"run_id,omitempty"`
	Rows     int64         `json:"rows"`
	Windows  int           `json:"windows"`
	Groups   int           `json:"groups,omitempty"` // that were read by activities of their own
	Requests load.Requests `json:"requests"`
	Outputs  []OutputEnd   `json:"outputs,omitempty"`
	// Code is the exit code of the form's error, 0 if it has none. Error is its text.
	Code  int    `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
}

// OutputEnd says what an output holds now.
type OutputEnd struct {
	Path   string `json:"path"`
	Rows   int64  `json:"rows"`
	Parts  int    `json:"parts,omitempty"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// FormInput is what a Form workflow is started with.
type FormInput struct {
	Source        Source  `json:"source"`
	Form          string  `json:"form"`
	GroupRequests int     `json:"group_requests,omitempty"`
	Cursor        *Cursor `json:"cursor,omitempty"` // where it goes on in a new history
}

// Cursor is how far a Form workflow has come.
type Cursor struct {
	Run     string    `json:"run"`            // id of the run
	Decided time.Time `json:"decided"`        // see pipelines.Shared
	Begun   int       `json:"begun"`          // how often it began with Plan
	Plan    *PlanEnd  `json:"plan,omitempty"` // how it goes on
	Next    int       `json:"next"`           // the first group of the plan that is not read
	Groups  int       `json:"groups"`         // that were read
	Rounds  int       `json:"rounds"`         // plans whose groups were read
	Left    bool      `json:"left,omitempty"` // Reconcile has to read what is left
	// Spent are the requests of all activities that have ended.
	Spent load.Requests `json:"spent"`
}

// Step is what an activity of a form is given.
type Step struct {
	Source        Source        `json:"source"`
	Form          string        `json:"form"`
	Run           string        `json:"run"`
	Decided       time.Time     `json:"decided"`
	Of            string        `json:"of,omitempty"`    // see pipelines.Shared
	Alone         bool          `json:"alone,omitempty"` // see pipelines.Shared
	Group         int           `json:"group,omitempty"` // of Read, or the share of Stage
	GroupRequests int           `json:"group_requests,omitempty"`
	Spent         load.Requests `json:"spent"`
}

// PlanEnd says how a run goes on after Plan or Reconcile: see pipelines.SharedPlan. Done is
// set if the activity has done all that was left.
type PlanEnd struct {
	Of       string        `json:"of,omitempty"`
	Groups   int           `json:"groups,omitempty"`
	Shares   int           `json:"shares,omitempty"`
	Windows  int           `json:"windows,omitempty"`
	Results  int64         `json:"results,omitempty"`
	Requests load.Requests `json:"requests"`
	Done     *FormEnd      `json:"done,omitempty"`
}

// ReadEnd is what Read did.
type ReadEnd struct {
	Windows  int           `json:"windows"`
	Results  int64         `json:"results"`
	Requests load.Requests `json:"requests"`
	// Gone means that the run has to be planned again. Left means that Reconcile has to read this
	// group and all that follow.
	Gone bool `json:"gone,omitempty"`
	Left bool `json:"left,omitempty"`
}

// StageEnd is what Stage did.
type StageEnd struct {
	Gone bool `json:"gone,omitempty"` // as in ReadEnd
}

// CommitEnd is what Commit did.
type CommitEnd struct {
	Gone bool     `json:"gone,omitempty"` // as in ReadEnd
	Done *FormEnd `json:"done,omitempty"`
}

// Heartbeat is what an activity tells while it works.
type Heartbeat struct {
	Rows     int64 `json:"rows"`
	Windows  int64 `json:"windows"`
	Requests int64 `json:"requests"`
}

// PipelineID returns the id of the workflow of a definition.
func PipelineID(pipeline string) string { return "formetl/" + pipeline }

// FormID returns the id of the workflow of a form.
func FormID(pipeline, form string) string { return fmt.Sprintf("formetl/%s/%s", pipeline, form) }

// ended logs the end of a form's run, and returns what a payload says of it.
func ended(ctx context.Context, o pipelines.Options, in Step, r *pipelines.FormReport) *FormEnd {
	end := &FormEnd{Form: r.Form, RunID: in.Run, Rows: r.Rows, Windows: r.Windows, Requests: r.Requests}
	for _, out := range r.Outputs {
		end.Outputs = append(end.Outputs, OutputEnd{Path: out.Path, Rows: out.Rows, Parts: out.Parts, Bytes: out.Bytes, SHA256: out.SHA256})
	}
	o.Logger.LogAttrs(ctx, slog.LevelInfo, "the form is written", slog.String("form", in.Form), slog.String("run_id", in.Run), slog.Int64("rows", end.Rows), slog.Int("windows", end.Windows))
	return end
}
