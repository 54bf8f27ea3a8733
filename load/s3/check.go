package s3

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/formetl/formetl/load"
)

// Check tells whether the upload or its completed object is there. An empty
// object has no upload, so it can always be committed. If the store does not
// support or permit the question, the upload is assumed to be there, and Commit
// finds out.
func (g *stager) Check(ctx context.Context, p load.Prepared) error {
	s, err := checkStaged(p)
	if err != nil {
		return err
	}
	if err := g.checkContext(ctx, "check", p.Name); err != nil || s.Upload == "" {
		return err
	}
	err = g.uploads.ask(ctx, p.Name, s.Upload)
	switch {
	case err == nil:
		return nil
	case unlisted(err):
		g.untold.Do(func() {
			g.options.Logger.LogAttrs(ctx, slog.LevelWarn, "the store does not tell whether uploads are still there; they are taken to be",
				slog.String("path", g.String()), slog.String("error", g.fail(ctx, "look for the upload of", p.Name, err).Error()))
		})
		return nil
	case !noUpload(err):
		return g.fail(ctx, "look for the upload of", p.Name, err)
	}
	err = g.committed(ctx, p, s)
	if errors.Is(err, load.ErrConflict) {
		// Another object has the name. What matters here is that the upload is
		// gone.
		return fmt.Errorf("%s cannot be committed: its upload is gone, and the name is taken by other content: %w", g.path(p.Name), load.ErrStagedGone)
	}
	return err
}
