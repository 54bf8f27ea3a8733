package output

import (
	"context"
	"log/slog"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// codebookTask is a codebook that is to be written, with the outputs that share it.
type codebookTask struct {
	place   definition.CodebookPlace
	targets []*target
	lead    *target // the one whose rows it counts
}

// writeCodebooks writes the codebooks of the outputs that are committed. A codebook
// that cannot be written is told in the log and the report; it fails nothing.
func (s *Set) writeCodebooks(ctx context.Context, schema *schemas.Schema) {
	ctx, cancel := load.Lingering(ctx, commitGrace)
	defer cancel()
	tasks := codebookTasks(s.job.Tables, s.committed())
	if len(tasks) > 0 {
		s.job.At(PointCodebook)
	}
	for _, task := range tasks {
		err := writeCodebook(ctx, s.job, task, schema)
		if err == nil {
			continue
		}
		s.mu.Lock()
		for _, t := range task.targets {
			t.report.CompanionsError = err.Error()
		}
		s.mu.Unlock()
		attrs := []slog.Attr{slog.String("path", strings.Join(task.place.Paths(), ", ")), slog.String("error", err.Error())}
		if isError[*codebook.ForeignFileError](err) {
			attrs = append(attrs, slog.String("hint", codebook.Hint))
		}
		s.job.Log.LogAttrs(ctx, slog.LevelWarn, "the codebook could not be written; the data are whole without it", attrs...)
	}
}

// codebookTasks are the codebooks of the committed outputs, in the order of the
// definition. A codebook that several outputs share counts the rows of a dataset
// rather than those of a file.
func codebookTasks(tables Tables, committed []*target) []*codebookTask {
	var tasks []*codebookTask
	at := map[definition.CodebookPlace]*codebookTask{}
	for _, t := range committed {
		place, ok := definition.CodebookPlaceOf(t.def, t.report.Path, tables.Formats)
		if !ok || t.out.at().book.Columns == nil {
			continue
		}
		task := at[place]
		if task == nil {
			task = &codebookTask{place: place, lead: t}
			at[place] = task
			tasks = append(tasks, task)
		}
		task.targets = append(task.targets, t)
		if t.def.Dataset() && !task.lead.def.Dataset() {
			task.lead = t
		}
	}
	return tasks
}

// committed are the targets that were committed.
func (s *Set) committed() []*target {
	s.mu.Lock()
	defer s.mu.Unlock()
	var done []*target
	for _, t := range s.targets {
		if t.committed {
			done = append(done, t)
		}
	}
	return done
}

// writeCodebook writes one codebook to its place.
func writeCodebook(ctx context.Context, j *Job, task *codebookTask, schema *schemas.Schema) error {
	p := task.lead.out.at()
	if err := p.held(); err != nil {
		return err // another run holds the output and writes its codebook
	}
	dest, err := j.Tables.Open(ctx, task.place.Root, p.out)
	if err != nil {
		return err
	}
	return codebook.Write(ctx, dest, task.place, codebook.New(j.Def, j.Form, schema, p.book), p.book.Adds, j.Log)
}
