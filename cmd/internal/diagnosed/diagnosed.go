// Package diagnosed is what `formetl doctor` prints, for people and as JSON.
//
// Begin reading at Result.
package diagnosed

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/pipelines/doctor"
	"github.com/formetl/formetl/schemas/plain"
)

// Result is the checklist of a definition. It is printed as JSON.
type Result struct {
	Pipeline   string    `json:"pipeline,omitempty"` // left out where the definition cannot be read
	Definition string    `json:"definition"`
	At         time.Time `json:"at"`
	Healthy    bool      `json:"healthy"`   // no check failed
	ExitCode   int       `json:"exit_code"` // of the command
	Requests   int64     `json:"requests"`  // that were sent to the service
	Counts     Counts    `json:"counts"`
	Checks     []Check   `json:"checks"`
	// Honours is left out where the service was not asked.
	Honours *doctor.Honours `json:"honours,omitempty"`
}

// Counts says how many checks came out in which way.
type Counts struct {
	OK         int `json:"ok"`
	Warnings   int `json:"warnings"`
	Failed     int `json:"failed"`
	NotChecked int `json:"not_checked"`
}

// Check is one check with the exit code of its fault alone, 0 if nothing failed.
type Check struct {
	doctor.Check
	ExitCode int `json:"exit_code"`
}

// Of returns the result of a report.
func Of(r *doctor.Report) Result {
	err := r.Err()
	result := Result{
		Pipeline: r.Pipeline, Definition: r.Definition, At: r.At.UTC().Truncate(time.Second), Healthy: err == nil, ExitCode: exit.Code(err),
		Requests: r.Requests, Checks: make([]Check, len(r.Checks)), Honours: r.Honours,
	}
	for i, c := range r.Checks {
		result.Checks[i] = Check{Check: c, ExitCode: exit.Code(c.Err)}
		switch c.State {
		case doctor.OK:
			result.Counts.OK++
		case doctor.Warning:
			result.Counts.Warnings++
		case doctor.Failed:
			result.Counts.Failed++
		case doctor.NotChecked:
			result.Counts.NotChecked++
		}
	}
	return result
}

// Print prints a report, and returns a *doctor.FaultsError of what failed.
func Print(w io.Writer, r *doctor.Report, asJSON bool) error {
	result := Of(r)
	var err error
	if asJSON {
		err = show.JSON(w, result)
	} else {
		err = show.Print(w, []byte(result.Text()))
	}
	if err != nil {
		return err
	}
	return r.Err()
}

// Text is the checklist for people: a line for each check, one for each cure, the table of
// what the service honours, and a last line that sums up.
func (r Result) Text() string {
	rows := make([][]string, 0, 2*len(r.Checks))
	for _, c := range r.Checks {
		text := c.Detail
		if c.Of != "" {
			text = c.Of + ": " + text
		}
		rows = append(rows, []string{string(c.State), c.Name, text})
		if c.Cure != "" {
			rows = append(rows, []string{"", "", "cure: " + c.Cure})
		}
	}
	return show.Columns("", rows) + r.table() + r.summary() + "\n"
}

// table says what the service honours.
func (r Result) table() string {
	if r.Honours == nil {
		return ""
	}
	rows := make([][]string, 0, len(r.Honours.Rows))
	for _, row := range r.Honours.Rows {
		rows = append(rows, []string{row.Answer, row.Asked, row.Reason})
	}
	return fmt.Sprintf("what the service honours, by API %s with form %s alone, asked by %s (nothing of the results stands here):\n",
		r.Honours.API, plain.Line(r.Honours.Form), show.Plural(r.Honours.Requests, "request")) + show.Columns("  ", rows)
}

// summary is the last line of the checklist.
func (r Result) summary() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %d ok, %s, %d failed, %d not checked; %s sent", show.Plural(len(r.Checks), "check"),
		r.Counts.OK, show.Plural(r.Counts.Warnings, "warning"), r.Counts.Failed, r.Counts.NotChecked, show.Plural(r.Requests, "request"))
	if !r.Healthy {
		fmt.Fprintf(&s, "; it ends with %d", r.ExitCode)
	}
	return s.String()
}
