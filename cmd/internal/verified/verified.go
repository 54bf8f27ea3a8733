// Package verified is what `formetl verify` prints, for people and as JSON.
//
// Begin reading at Result.
package verified

import (
	"fmt"
	"strings"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/load/audit"
	"github.com/formetl/formetl/pipelines/definition"
)

// Result is what verify found. It is printed as JSON.
type Result struct {
	Sound    bool     `json:"sound"`
	Requests int64    `json:"requests"` // counts that the service was asked for
	Outputs  []Output `json:"outputs"`
}

// Output is the check of one output.
type Output struct {
	*audit.Report
	Sound    bool     `json:"sound"`
	Commands []string `json:"commands,omitempty"` // that mend it
}

// Of adds to a report the commands that mend what is damaged, by def.
func Of(r *audit.Report, def *definition.Definition) Output {
	o := Output{Report: r, Sound: r.Sound()}
	for _, m := range r.Mend {
		o.Commands = append(o.Commands, def.Command(m.Command, m.Flags))
	}
	return o
}

// Text is the result for people: a line for each output, and one for each problem.
func (r Result) Text() string {
	var b strings.Builder
	for _, o := range r.Outputs {
		state := "sound"
		if !o.Sound {
			state = show.Plural(len(o.Problems), "problem")
		}
		run := "no run"
		if m := o.Manifest; m != nil {
			run = fmt.Sprintf("%s, last run %s", show.Covered(m), m.RunID)
		}
		fmt.Fprintf(&b, "%s: %s, %s, %s: %s\n", o.Path, show.Plural(o.Parts, "part"), show.Plural(o.Rows, "row"), run, state)
		for _, p := range o.Problems {
			where := ""
			if p.Part != "" {
				where = p.Part + ": "
			}
			fmt.Fprintf(&b, "  %-10s  %s%s\n", p.Kind, where, p.Text)
		}
		for _, note := range o.Notes {
			fmt.Fprintf(&b, "  note        %s\n", note)
		}
		for i, command := range o.Commands {
			what := "to mend it"
			switch {
			case i > 0:
				what = "and"
			case o.ByHand() > 0:
				what = "to mend the rest"
			}
			fmt.Fprintf(&b, "  %-10s  %s\n", what, command)
		}
	}
	return b.String()
}
