package pipelines

import (
	"context"
	"log/slog"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// codebookOutput is an output that a codebook tells of.
type codebookOutput interface {
	facts() *codebookFacts
	held() error
}

// codebookTask is a codebook that is to be written, and the outputs that it is
// about.
type codebookTask struct {
	place   definition.CodebookPlace
	targets []*target
	lead    *target // the one whose rows it counts
}

// writeCodebooks writes the codebooks of the outputs that are committed. The
// data stand whatever becomes of them: one that cannot be written is told in
// the log and the report.
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
		if isError[*ForeignFileError](err) {
			attrs = append(attrs, slog.String("hint", hintNoCodebook))
		}
		f.log.LogAttrs(ctx, slog.LevelWarn, "the codebook could not be written; the data are whole without it", attrs...)
	}
}

// codebookTasks are the codebooks of the committed outputs, in the order of the
// definition. Where outputs share one it counts the rows of a dataset before
// those of a file, whatever their order.
func (f *formRun) codebookTasks() []*codebookTask {
	var tasks []*codebookTask
	at := map[definition.CodebookPlace]*codebookTask{}
	for _, t := range f.committed() {
		place, ok := definition.CodebookPlaceOf(t.def, t.report.Path, f.o.Tables.Formats)
		if out, is := t.out.(codebookOutput); !ok || !is || out.facts().columns == nil {
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

// writeCodebook writes the codebook of an output.
func (f *formRun) writeCodebook(ctx context.Context, task *codebookTask) error {
	out := task.lead.out.(codebookOutput)
	if err := out.held(); err != nil {
		return err // whoever holds the output writes one of its own
	}
	dest, err := f.o.Tables.Open(ctx, task.place.Root, task.lead.def)
	if err != nil {
		return err
	}
	before, err := earlierFiles(ctx, dest, task.place)
	if err != nil {
		return err
	}
	facts := out.facts()
	b := f.codebookOf(facts)
	if facts.adds {
		if earlier := f.earlierCodebook(ctx, before, task.place); earlier != nil {
			b.remember(earlier)
		}
	}
	data, err := b.encode()
	if err != nil {
		return err
	}
	// The schema last: it is what the next run reads.
	if err := dest.Put(ctx, task.place.Table(), b.table(), load.AnyVersion); err != nil {
		return err
	}
	return dest.Put(ctx, task.place.Schema(), data, load.AnyVersion)
}

// earlierCodebook is the codebook that an earlier run left, nil where there is
// none that can be read.
func (f *formRun) earlierCodebook(ctx context.Context, data []byte, place definition.CodebookPlace) *codebook {
	if data == nil {
		return nil
	}
	b, err := decodeCodebook(data)
	if err != nil {
		f.log.LogAttrs(ctx, slog.LevelWarn, "the codebook of earlier runs cannot be read; its choices begin anew",
			slog.String("path", place.Paths()[0]), slog.String("error", err.Error()))
		return nil
	}
	return b
}
