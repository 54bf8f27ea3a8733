package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
)

// notBegun ends a command that failed before it began to run its definitions. Report and
// metrics tell of each definition, so that a dashboard shows the failure. It returns the
// error. Wrong flags begin no run, and leave both files as they were.
func (r *runs) notBegun(ctx context.Context, f runFlags, files []string, err error) error {
	if r == nil || !r.process.log.Started() || f.dryRun {
		return err
	}
	for i, file := range files {
		now := time.Now()
		report := &pipelines.Report{
			Pipeline: r.process.pipelineOf(file, f.DefinitionFlags, err), Definition: file, RunID: account.NewRunID(now),
			StartedAt: now.UTC(), EndedAt: now.UTC(), Forms: []*pipelines.FormReport{},
		}
		console.SetExitCodes(report, whyNotBegun(file, err))
		r.reports = append(r.reports, report)
		if i == 0 {
			r.process.log.About(report.Pipeline, report.RunID)
		}
	}
	// The error tells already where one of these files cannot be written.
	_ = f.watch.write(ctx, r.process, r.reports...)
	return err
}

// wrongIn returns the error of the definition in a file, nil if it has none.
func wrongIn(file string, err error) *definition.Error {
	for _, part := range console.Parts(err) {
		if wrong, ok := errors.AsType[*definition.Error](part); ok && wrong.File == file {
			return wrong
		}
	}
	return nil
}

// whyNotBegun is the reason why the definition in a file was not run.
func whyNotBegun(file string, err error) error {
	if wrong := wrongIn(file, err); wrong != nil {
		return wrong
	}
	if _, other := errors.AsType[*definition.Error](err); other {
		return fmt.Errorf("not begun, because another definition is wrong: %w", err)
	}
	return err
}

// pipelineOf is the name of the pipeline in a file. Where nobody can read it, it is the
// name of the file.
func (p *process) pipelineOf(file string, f console.DefinitionFlags, err error) string {
	name := ""
	if wrong := wrongIn(file, err); wrong != nil {
		name = wrong.Name
	} else if defs, err := p.load(context.Background(), &f, []string{file}, withoutKey); err == nil {
		name = defs[0].Name
	}
	return cmp.Or(name, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
}
