package codebook

import (
	"context"
	"log/slog"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// Write writes a codebook to its place at a destination: the table, then the
// schema. Where the output keeps parts of earlier runs (adds), the choices that
// the codebook before lists are kept too. A codebook that cannot be read is a
// warning in the log. A file there that formetl did not write is a *ForeignFileError.
func Write(ctx context.Context, dest load.Store, place definition.CodebookPlace, b Book, adds bool, log *slog.Logger) error {
	before, err := earlierFiles(ctx, dest, place)
	if err != nil {
		return err
	}
	if adds && before != nil {
		earlier, err := decode(before)
		if err != nil {
			log.LogAttrs(ctx, slog.LevelWarn, "the codebook of earlier runs cannot be read; its choices begin anew",
				slog.String("path", place.Paths()[0]), slog.String("error", err.Error()))
		} else {
			b.remember(earlier)
		}
	}
	data, err := b.encode()
	if err != nil {
		return err
	}
	// The schema is written last, because the next run reads it.
	if err := dest.Put(ctx, place.Table(), b.table(), load.AnyVersion); err != nil {
		return err
	}
	return dest.Put(ctx, place.Schema(), data, load.AnyVersion)
}
