package pipelines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
)

// mostShownRejects is how many rejected results an error shows.
const mostShownRejects = 3

// TooManyRejectsError is a *reading.RejectsError with what helps to mend the schema.
type TooManyRejectsError struct {
	Kept output.KeptLetters
	Err  error
}

// Error tells of the first rejected results and where more are. It shows no value,
// because a value may be personal data.
func (e *TooManyRejectsError) Error() string {
	var b strings.Builder
	b.WriteString(e.Err.Error())
	for i, r := range e.Kept.First[:min(len(e.Kept.First), mostShownRejects)] {
		b.WriteString([]string{"; such as ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "result %d, column %s: %s", r.ResultID, r.Column, r.Reason)
	}
	if e.Kept.Path != "" {
		fmt.Fprintf(&b, "; the first %d dead letters are in %s", len(e.Kept.First), e.Kept.Path)
	}
	return b.String()
}

// Unwrap returns the error of the reading.
func (e *TooManyRejectsError) Unwrap() error { return e.Err }

// withLetters keeps the first dead letters of a run that ends because of too many rejected
// results, and adds to its error where they are. It returns any other error as it is.
func withLetters(ctx context.Context, f *formRun, err error) error {
	if _, ok := errors.AsType[*reading.RejectsError](err); !ok {
		return err
	}
	kept, failed := output.KeepLetters(f.reader.Def.State, f.reader.RunID, f.reader.Name, f.reconciler.Windows)
	if failed != nil {
		f.reader.Log.LogAttrs(ctx, slog.LevelWarn, "the first dead letters could not be kept", slog.String("error", failed.Error()))
	}
	f.report.DeadLetters = kept.Path
	return &TooManyRejectsError{Kept: kept, Err: err}
}
