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
	sharing := map[definition.CodebookPlace][]*target{}
	for _, t := range s.committed() {
		place, ok := definition.CodebookPlaceOf(t.def, t.report.Path, s.job.Tables.Formats)
		if !ok || t.out.at().book.Columns == nil {
			continue
		}
		if sharing[place] == nil {
			places = append(places, place)
		}
		sharing[place] = append(sharing[place], t)
	}
	if len(places) > 0 {
		s.job.At(PointCodebook)
	}
	for _, place := range places {
		err := s.job.writeCodebook(ctx, place, sharing[place], schema)
		if err == nil {
			continue
		}
		s.mu.Lock()
		for _, t := range sharing[place] {
			t.report.CompanionsError = err.Error()
		}
		s.mu.Unlock()
		attrs := []slog.Attr{slog.String("path", strings.Join(place.Paths(), ", ")), slog.String("error", err.Error())}
		if _, foreign := errors.AsType[*codebook.ForeignFileError](err); foreign {
			attrs = append(attrs, slog.String("hint", codebook.Hint))
		}
		s.job.Log.LogAttrs(ctx, slog.LevelWarn, "the codebook could not be written; the data are whole without it", attrs...)
	}
}

// writeCodebook writes the codebook that outputs share. If one of them is a
// dataset, the codebook counts its rows and not those of a file.
func (j *Job) writeCodebook(ctx context.Context, place definition.CodebookPlace, sharing []*target, schema *schemas.Schema) error {
	lead := max(0, slices.IndexFunc(sharing, func(t *target) bool { return t.def.Dataset() }))
	p := sharing[lead].out.at()
	if err := p.held(); err != nil {
		return err // another run has the lease and writes the codebook
	}
	dest, err := j.Tables.Open(ctx, place.Root, p.out)
	if err != nil {
		return err
	}
	return codebook.Write(ctx, dest, place, codebook.New(j.Def, j.Form, schema, p.book), p.book.Adds)
}
