package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2/maybe"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/budget"
	"github.com/formetl/formetl/pipelines/definition"
)

// spoken is the content of the file in the state folder that remembers the generation
// which an account was found to speak.
type spoken struct {
	API definition.API `json:"api"`
}

// automatic makes a client of the generation that the service speaks. The JSON generation
// is preferred, because its pages are longer.
func automatic(ctx context.Context, def *definition.Definition, o Options) (extract.Client, error) {
	file := filepath.Join(def.State, "api-"+budget.AccountName(def)+".json")
	if api, ok := remembered(file); ok {
		return newClient(def, api, o)
	}
	refusals := make([]error, 0, 2)
	for _, api := range []definition.API{definition.APIv2, definition.APIv1} {
		client, err := newClient(def, api, o)
		if err != nil {
			return nil, err
		}
		if _, err = client.Forms(ctx); err == nil {
			remember(ctx, file, api, o)
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

// remembered returns the generation that a file remembers. A file that cannot be read
// remembers none.
func remembered(file string) (definition.API, bool) {
	data, err := os.ReadFile(file)
	var s spoken
	if err != nil || json.Unmarshal(data, &s) != nil || s.API != definition.APIv1 && s.API != definition.APIv2 {
		return "", false
	}
	return s.API, true
}

// remember writes the generation to a file. If it cannot, the next command asks again.
func remember(ctx context.Context, file string, api definition.API, o Options) {
	o.Logger.LogAttrs(ctx, slog.LevelInfo, "the service was asked which generation it speaks", slog.String("api", string(api)))
	data, err := json.Marshal(spoken{api})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o750)
	}
	if err == nil {
		err = maybe.WriteFile(file, append(data, '\n'), 0o640)
	}
	if err != nil {
		o.Logger.LogAttrs(ctx, slog.LevelWarn, "which generation the service speaks is not remembered, and is asked again next time", slog.String("error", err.Error()))
	}
}
