package worker

import (
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

	// The workflow goes on with these when it begins a new history.
	Left  []string  `json:"left,omitempty"` // forms that are not begun
	Ended []FormEnd `json:"ended,omitempty"`
}

// Listed are the forms that a definition reads.
type Listed struct {
	Pipeline string   `json:"pipeline"`
	Forms    []string `json:"forms"`
	// Clashes are forms that would be written over each other, with the error of each.
	Clashes []FormEnd `json:"clashes,omitempty"`
}

// PipelineEnd is what a Pipeline workflow did.
type PipelineEnd struct {
	Forms []FormEnd `json:"forms"`
}

// FormInput is what Run is given.
type FormInput struct {
	Source Source `json:"source"`
	Form   string `json:"form"`
}

// FormEnd says how the run of a form ended.
type FormEnd struct {
	Form     string        `json:"form"`
	RunID    string        `json:"run_id,omitempty"`
	Rows     int64         `json:"rows"`
	Windows  int           `json:"windows"`
	Requests load.Requests `json:"requests"` // of the last try
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

// Heartbeat is what an activity tells while it works.
type Heartbeat struct {
	Rows     int64 `json:"rows"`
	Windows  int64 `json:"windows"`
	Requests int64 `json:"requests"`
}

// PipelineID returns the id of the workflow of a definition.
func PipelineID(pipeline string) string { return "formetl/" + pipeline }

// formEnd is what a payload says of a form's run.
func formEnd(runID string, r *pipelines.FormReport) *FormEnd {
	end := &FormEnd{Form: r.Form, RunID: runID, Rows: r.Rows, Windows: r.Windows, Requests: r.Requests}
	for _, out := range r.Outputs {
		end.Outputs = append(end.Outputs, OutputEnd{Path: out.Path, Rows: out.Rows, Parts: out.Parts, Bytes: out.Bytes, SHA256: out.SHA256})
	}
	return end
}
