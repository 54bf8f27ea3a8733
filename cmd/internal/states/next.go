package states

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/pipelines/maintain"
	"github.com/formetl/formetl/schemas/plain"
)

// WriteNextRun says what the next run of a form does with what earlier runs left.
func WriteNextRun(w io.Writer, r *maintain.StateReport, form *maintain.FormState) {
	if slices.ContainsFunc(form.Outputs, func(out *maintain.OutputState) bool { return out.Err != nil }) {
		return
	}
	will := form.Will
	if will.UnderWay != nil {
		fmt.Fprintln(w, "  a run is under way; another one that begins now ends at once with 75")
	}
	for _, f := range will.Finishes {
		fmt.Fprintf(w, "  the next run first finishes the commit of run %s at %s\n", plain.Line(f.RunID), plain.Line(f.Path))
	}
	switch {
	case will.Resumes != nil:
		read := "read " + show.Since(r.Now, will.Resumes.Oldest)
		if will.Resumes.Newest.Sub(will.Resumes.Oldest) >= time.Second {
			read = "read from " + show.Since(r.Now, will.Resumes.Oldest) + " to " + show.Since(r.Now, will.Resumes.Newest)
		}
		fmt.Fprintf(w, "  the next run resumes from run %s and takes over %s, %s\n", plain.Line(will.Resumes.RunID), show.Plural(will.Resumes.Results, "result"), read)
	case will.Discards != "":
		fmt.Fprintf(w, "  the next run begins anew and discards what run %s had read: %s\n", plain.Line(will.Discards), plain.Line(will.Why))
	case form.Next == nil && will.UnderWay == nil:
		fmt.Fprintln(w, "  the next run begins anew")
	}
}

// nextRunJSON is what the next run of a form does with what earlier runs left. What
// does not apply is null.
type nextRunJSON struct {
	UnderWay bool             `json:"under_way"` // a run that begins now ends at once with 75
	Finishes []unfinishedJSON `json:"finishes"`  // recorded commits that it finishes first
	Resumes  *resumesJSON     `json:"resumes"`
	Discards *discardsJSON    `json:"discards"`
}

type unfinishedJSON struct {
	Path  string `json:"path"`
	RunID string `json:"run_id"`
}

type resumesJSON struct {
	RunID   string    `json:"run_id"`
	Results int64     `json:"results"`
	Oldest  time.Time `json:"oldest"` // when the results were read
	Newest  time.Time `json:"newest"`
}

type discardsJSON struct {
	RunID  string `json:"run_id"`
	Reason string `json:"reason"`
}

func nextRunOf(will maintain.NextRun) nextRunJSON {
	j := nextRunJSON{UnderWay: will.UnderWay != nil, Finishes: []unfinishedJSON{}}
	for _, f := range will.Finishes {
		j.Finishes = append(j.Finishes, unfinishedJSON(f))
	}
	if r := will.Resumes; r != nil {
		j.Resumes = &resumesJSON{r.RunID, r.Results, whole(r.Oldest), whole(r.Newest)}
	}
	if will.Discards != "" {
		j.Discards = &discardsJSON{will.Discards, will.Why}
	}
	return j
}
