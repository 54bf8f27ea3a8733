package infer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// newFitting makes a flattener that counts every value that does not fit a
// schema's types and how it reads values. No other rule of the columns counts:
// nothing is hidden, because nothing is written. It is nil without a schema or
// columns.
func newFitting(s *schemas.Schema, zone *time.Location) (*transform.Flattener, error) {
	if s == nil || len(s.Columns) == 0 {
		return nil, nil
	}
	lenient := &schemas.Schema{Name: s.Name, Unknown: schemas.UnknownIgnore, Empty: s.Empty}
	for _, c := range s.Columns {
		lenient.Columns = append(lenient.Columns, schemas.Column{
			Name: c.Name, From: c.From, Type: c.Type, Reading: c.Reading, Inferred: c.Inferred, OnError: schemas.OnErrorSetNull,
		})
	}
	return transform.NewFlattener(lenient, transform.Options{Zone: zone, Emit: func(arrow.RecordBatch) error { return nil }})
}

// misfits says how many values of the sample do not fit the column and why, ""
// where all do. Reasons hold no value.
func misfits(stats transform.Stats, c schemas.Column, g transform.Guess) string {
	var faults []transform.Fault
	for f := range stats.Nulled {
		if f.Column == c.Name {
			faults = append(faults, f)
		}
	}
	slices.SortFunc(faults, func(a, b transform.Fault) int {
		return cmp.Or(cmp.Compare(stats.Nulled[b], stats.Nulled[a]), strings.Compare(a.Reason, b.Reason))
	})
	var parts []string
	for _, f := range faults {
		parts = append(parts, fmt.Sprintf("%s (%s)", count(int(stats.Nulled[f]), "value does not fit", "values do not fit"), f.Reason))
	}
	if missing := g.Results - g.Filled; c.Required && missing > 0 {
		parts = append(parts, fmt.Sprintf("nullable: false, and %s no value", count(missing, "result has", "results have")))
	}
	return strings.Join(parts, "; ")
}
