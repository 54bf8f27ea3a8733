package output

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// writeCodebooks writes the codebooks of the committed outputs, in the order of
// the definition. A failure goes to the log and the report, but the run still
// succeeds.
func (s *Set) writeCodebooks(ctx context.Context, schema *schemas.Schema) {
	ctx, cancel := load.Lingering(ctx, commitGrace)
	defer cancel()
	var places []definition.CodebookPlace
	sharing := map[definition.CodebookPlace][]*place{}
	for _, out := range s.committed() {
		p := out.at()
		at, ok := definition.CodebookPlaceOf(p.out, p.Path, s.job.Tables.Formats)
		if !ok || p.book.Columns == nil {
			continue
		}
		if sharing[at] == nil {
			places = append(places, at)
		}
		sharing[at] = append(sharing[at], p)
	}
	if len(places) > 0 {
		s.job.At(PointCodebook)
	}
	for _, at := range places {
		err := s.job.writeCodebook(ctx, at, sharing[at], schema)
		if err == nil {
			continue
		}
		s.mu.Lock()
		for _, p := range sharing[at] {
			p.report.CompanionsError = err.Error()
		}
		s.mu.Unlock()
		attrs := []slog.Attr{slog.String("path", strings.Join(at.Paths(), ", ")), slog.String("error", err.Error())}
		if _, foreign := errors.AsType[*codebook.ForeignFileError](err); foreign {
			attrs = append(attrs, slog.String("hint", codebook.Hint))
		}
		s.job.Log.LogAttrs(ctx, slog.LevelWarn, "the codebook could not be written; the data are whole without it", attrs...)
	}
}

// writeCodebook writes the codebook that outputs share. If one of them is a
// dataset, the codebook counts its rows and not those of a file.
func (j *Job) writeCodebook(ctx context.Context, at definition.CodebookPlace, sharing []*place, schema *schemas.Schema) error {
	lead := max(0, slices.IndexFunc(sharing, func(p *place) bool { return p.out.Dataset() }))
	p := sharing[lead]
	if err := p.held(); err != nil {
		return err // another run has the lease and writes the codebook
	}
	dest, err := j.Tables.Open(ctx, at.Root, p.out)
	if err != nil {
		return err
	}
	return codebook.Write(ctx, dest, at, codebook.New(j.Def, j.Form, schema, p.book), p.book.Adds)
}
