package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/definition"
)

// automatic makes a client of the generation that the service speaks. The JSON generation
// is preferred, because its pages are longer. It costs one request where that one is spoken.
func automatic(ctx context.Context, def *definition.Definition, o Options) (extract.Client, error) {
	refusals := make([]error, 0, 2)
	for _, api := range []definition.API{definition.APIv2, definition.APIv1} {
		client, err := newClient(ctx, def, api, o)
		if err != nil {
			return nil, err
		}
		if _, err = client.Forms(ctx); err == nil {
			o.Logger.LogAttrs(ctx, slog.LevelInfo, "the service was asked which generation it speaks", slog.String("api", string(api)))
			return client, nil
		}
		client.Close()
		if !speaksOtherwise(err) {
			return nil, fmt.Errorf("which generation the service speaks (source.api: auto): %w", err)
		}
		refusals = append(refusals, fmt.Errorf("by API %s: %w", api, err))
	}
	return nil, fmt.Errorf("the service speaks neither generation (source.api: auto): %w", errors.Join(refusals...))
}

// speaksOtherwise tells whether an answer may mean that the account is not asked by this
// generation: it was refused, or it is not an answer of the service.
func speaksOtherwise(err error) bool {
	if refused, ok := errors.AsType[*extract.ServiceError](err); ok {
		return !refused.Temporary()
	}
	_, foreign := errors.AsType[*transport.AnswerError](err)
	return foreign
}
