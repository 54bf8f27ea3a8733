package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines/doctor"
	"github.com/formetl/formetl/schemas/plain"
)

// checklist is the checklist of a definition. It is printed as JSON.
type checklist struct {
	Pipeline   string      `json:"pipeline,omitempty"` // left out where the definition cannot be read
	Definition string      `json:"definition"`
	At         time.Time   `json:"at"`
	Healthy    bool        `json:"healthy"`   // no check failed
	ExitCode   int         `json:"exit_code"` // of the command
	Requests   int64       `json:"requests"`  // that were sent to the service
	Counts     checkCounts `json:"counts"`
	Checks     []checked   `json:"checks"`
	// Honours is left out where the service was not asked.
	Honours *doctor.Honours `json:"honours,omitempty"`
}

// checkCounts says how many checks came out in which way.
type checkCounts struct {
	OK         int `json:"ok"`
	Warnings   int `json:"warnings"`
	Failed     int `json:"failed"`
	NotChecked int `json:"not_checked"`
}

// Check is one check with the exit code of its fault alone, 0 if nothing failed.
type checked struct {
	doctor.Check
	ExitCode int `json:"exit_code"`
}

// Of returns the result of a report.
func checklistOf(r *doctor.Report) checklist {
	err := r.Err()
	result := checklist{
		Pipeline: r.Pipeline, Definition: r.Definition, At: r.At.UTC().Truncate(time.Second), Healthy: err == nil, ExitCode: console.ExitCode(err),
		Requests: r.Requests, Checks: make([]checked, len(r.Checks)), Honours: r.Honours,
	}
	for i, c := range r.Checks {
		result.Checks[i] = checked{Check: c, ExitCode: console.ExitCode(c.Err)}
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
func printChecklist(w io.Writer, r *doctor.Report, asJSON bool) error {
	result := checklistOf(r)
	var err error
	if asJSON {
		err = console.JSON(w, result)
	} else {
		err = console.Print(w, []byte(result.Text()))
	}
	if err != nil {
		return err
	}
	return r.Err()
}

// Text is the checklist for people: a line for each check, one for each cure, the table of
// what the service honours, and a last line that sums up.
func (r checklist) Text() string {
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
	return console.Columns("", rows) + r.table() + r.summary() + "\n"
}

// table says what the service honours.
func (r checklist) table() string {
	if r.Honours == nil {
		return ""
	}
	rows := make([][]string, 0, len(r.Honours.Rows))
	for _, row := range r.Honours.Rows {
		rows = append(rows, []string{row.Answer, row.Asked, row.Reason})
	}
	return fmt.Sprintf("what the service honours, by API %s with form %s alone, asked by %s (nothing of the results stands here):\n",
		r.Honours.API, plain.Line(r.Honours.Form), console.Plural(r.Honours.Requests, "request")) + console.Columns("  ", rows)
}

// summary is the last line of the checklist.
func (r checklist) summary() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %d ok, %s, %d failed, %d not checked; %s sent", console.Plural(len(r.Checks), "check"),
		r.Counts.OK, console.Plural(r.Counts.Warnings, "warning"), r.Counts.Failed, r.Counts.NotChecked, console.Plural(r.Requests, "request"))
	if !r.Healthy {
		fmt.Fprintf(&s, "; it ends with %d", r.ExitCode)
	}
	return s.String()
}
