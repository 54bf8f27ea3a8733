package pipelines

import (
	"cmp"
	"context"
	"log/slog"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/definition"
)

// codebookOutput is an output that has a codebook beside it.
type codebookOutput interface {
	facts() *codebook.Facts
	held() error
}

// codebookTask is a codebook that is to be written, with the outputs that share it.
type codebookTask struct {
	place   definition.CodebookPlace
	targets []*target
	lead    *target // the one whose rows it counts
}

// writeCodebooks writes the codebooks of the outputs that are committed. A codebook
// that cannot be written is told in the log and the report; it fails nothing.
func (f *formRun) writeCodebooks(ctx context.Context) {
	ctx, cancel := load.Lingering(ctx, commitGrace)
	defer cancel()
	tasks := f.codebookTasks()
	if len(tasks) > 0 {
		f.at(pointCodebook)
	}
	for _, task := range tasks {
		err := f.writeCodebook(ctx, task)
		if err == nil {
			continue
		}
		f.mu.Lock()
		for _, t := range task.targets {
			t.report.CompanionsError = err.Error()
		}
		f.mu.Unlock()
		attrs := []slog.Attr{slog.String("path", strings.Join(task.place.Paths(), ", ")), slog.String("error", err.Error())}
		if isError[*codebook.ForeignFileError](err) {
			attrs = append(attrs, slog.String("hint", codebook.Hint))
		}
		f.log.LogAttrs(ctx, slog.LevelWarn, "the codebook could not be written; the data are whole without it", attrs...)
	}
}

// codebookTasks are the codebooks of the committed outputs, in the order of the
// definition. A codebook that several outputs share counts the rows of a dataset
// rather than those of a file.
func (f *formRun) codebookTasks() []*codebookTask {
	var tasks []*codebookTask
	at := map[definition.CodebookPlace]*codebookTask{}
	for _, t := range f.committed() {
		place, ok := definition.CodebookPlaceOf(t.def, t.report.Path, f.o.Tables.Formats)
		if out, is := t.out.(codebookOutput); !ok || !is || out.facts().Columns == nil {
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
func (f *formRun) committed() []*target {
	f.mu.Lock()
	defer f.mu.Unlock()
	var done []*target
	for _, t := range f.targets {
		if t.committed && t.out != nil {
			done = append(done, t)
		}
	}
	return done
}

// writeCodebook writes one codebook to its place.
func (f *formRun) writeCodebook(ctx context.Context, task *codebookTask) error {
	out := task.lead.out.(codebookOutput)
	if err := out.held(); err != nil {
		return err // another run holds the output and writes its codebook
	}
	dest, err := f.o.Tables.Open(ctx, task.place.Root, task.lead.def)
	if err != nil {
		return err
	}
	facts := out.facts()
	b := codebook.New(f.def, f.form, cmp.Or(f.schema, f.def.Schema), *facts)
	return codebook.Write(ctx, dest, task.place, b, facts.Adds, f.log)
}

// codebookFacts are what an output tells its codebook. Outputs embed it.
type codebookFacts struct{ book codebook.Facts }

func (c *codebookFacts) facts() *codebook.Facts { return &c.book }
