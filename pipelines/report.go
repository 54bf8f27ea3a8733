package pipelines

import (
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// Report says what a run did. It is written as JSON by --report.
type Report struct {
	Pipeline   string        `json:"pipeline"`
	Definition string        `json:"definition,omitempty"`
	RunID      string        `json:"run_id"`
	StartedAt  time.Time     `json:"started_at"`
	EndedAt    time.Time     `json:"ended_at"`
	ExitCode   int           `json:"exit_code"`
	Error      string        `json:"error,omitempty"`
	Requests   load.Requests `json:"requests"`
	// RequestOutcomes counts the attempts of all requests by what became of
	// them (transport.Sender.Outcomes).
	RequestOutcomes map[string]int64 `json:"request_outcomes,omitempty"`
	Forms           []*FormReport    `json:"forms"`
}

// FormReport says what a run did with one form.
type FormReport struct {
	Form      string     `json:"form"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   time.Time  `json:"ended_at"`
	Range     load.Range `json:"range"`
	Timezone  string     `json:"timezone"`
	// Continued is the id of a run that ended early and that this one went on
	// with, in its range and under its id; Kept are the windows that were not
	// read again. What the run's own range holds beyond follows as an entry of
	// its own.
	Continued string         `json:"continued,omitempty"`
	Kept      int            `json:"windows_kept,omitempty"`
	Windows   int            `json:"windows"`
	Rows      int64          `json:"rows"`
	Rejected  int64          `json:"rejected"`
	Rejects   []FaultCount   `json:"rejects,omitempty"` // rejected results by column and reason
	Nulled    []FaultCount   `json:"nulled,omitempty"`  // values that became null, by column and reason
	Replaced  int64          `json:"replaced_characters"`
	Verified  *load.Verified `json:"verified,omitempty"`
	Reread    int            `json:"windows_read_again"`
	Older     int            `json:"older_windows"` // of parts outside the range, read again because a result moved
	Requests  load.Requests  `json:"requests"`
	Undated   int64          `json:"undated"` // rows without a date
	Drift     []string       `json:"drift,omitempty"`
	// Changes are those of the form since the run before, as programs read them.
	Changes []schemas.Change `json:"changes,omitempty"`
	// ResultsKept is of a run that failed after it had asked for results: how
	// many of them the next run need not ask for. Those of windows that were not
	// read whole are not among them.
	ResultsKept *int64         `json:"results_kept,omitempty"`
	Outputs     []OutputReport `json:"outputs"`
	ExitCode    int            `json:"exit_code"` // the class of Err, filled in by the command
	Error       string         `json:"error,omitempty"`
	Err         error          `json:"-"` // what Error is the text of

	read        []extract.Window // what this process asked for itself, in order of time
	readUndated bool             // the same for results without a date
}

// FaultCount counts the values of a column that did not fit for one reason.
type FaultCount struct {
	Column string `json:"column"`
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// OutputReport says what one output holds now.
type OutputReport struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	// Explode is the source of the list whose elements are the rows of a child
	// output, "" for others.
	Explode string `json:"explode,omitempty"`
	Rows    int64  `json:"rows"`
	Parts   int    `json:"parts"` // data objects; of a dataset those of the whole dataset
	Bytes   int64  `json:"bytes"` // of the data objects
	// Watermark is up to where a dataset's results are complete, none where no
	// run goes on from it.
	Watermark load.WallTime `json:"watermark,omitzero"`
	// Warnings tell what a spreadsheet will not show as it is in the output.
	Warnings []string `json:"warnings,omitempty"`
	// CompanionsError is why the codebook beside the output could not be
	// written; the data are whole without it.
	CompanionsError string `json:"companions_error,omitempty"`
	Error           string `json:"error,omitempty"`
}
