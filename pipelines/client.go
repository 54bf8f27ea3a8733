package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	v1 "github.com/formetl/formetl/extract/v1"
	v2 "github.com/formetl/formetl/extract/v2"
	"github.com/formetl/formetl/pipelines/definition"
)

// NewClient makes a client for the transactions of the definition's account, of the API
// generation that the definition names. Where it says auto, the service is asked which one it
// speaks. The bookings of the budget of requests are kept in the state.
func NewClient(ctx context.Context, def *definition.Definition, o Options) (extract.Client, error) {
	if def.Source.Zone == nil {
		return nil, errors.New("the source has no time zone")
	}
	o = o.WithDefaults()
	if def.Source.API == definition.APIAuto {
		return automatic(ctx, def, o)
	}
	return newClient(ctx, def, def.Source.API, o)
}

// newClient makes a client of one API generation. It sends nothing.
func newClient(ctx context.Context, def *definition.Definition, api definition.API, o Options) (extract.Client, error) {
	s := def.Source
	var requests transport.Budget
	if s.Requests.PerMinute > 0 || s.Requests.PerDay > 0 {
		state, err := OpenState(ctx, def, o)
		if err != nil {
			return nil, err
		}
		requests = newBudget(def, state, o.Now, o.waiting)
	}
	cfg := transport.Config{
		BaseURL: s.BaseURL, Account: s.Account, AllowHTTP: s.AllowHTTP, Key: s.Key,
		Timeout: s.Requests.Timeout, Retries: s.Requests.Retries, Concurrency: s.Requests.Concurrency,
		Budget:     requests,
		BackoffMin: o.Client.BackoffMin, BackoffMax: o.Client.BackoffMax, Patience: cmp.Or(o.Client.Patience, s.Requests.Patience),
		Logger: o.Logger, Contact: o.Client.Contact, Transport: o.Client.Transport, UserAgent: o.Client.UserAgent,
	}
	if api == definition.APIv2 {
		return v2.NewClient(cfg, s.Zone)
	}
	return v1.NewClient(cfg)
}

// automatic makes a client of the API generation that the service speaks. It asks by the JSON
// generation (v2) first, because its pages are longer. That costs one request if the service
// speaks v2.
func automatic(ctx context.Context, def *definition.Definition, o Options) (extract.Client, error) {
	refusals := make([]error, 0, 2)
	for _, api := range []definition.API{definition.APIv2, definition.APIv1} {
		client, err := newClient(ctx, def, api, o)
		if err != nil {
			return nil, err
		}
		if _, err = client.Forms(ctx); err == nil {
			o.Logger.LogAttrs(ctx, slog.LevelInfo, "the service speaks this API generation", slog.String("api", string(api)))
			return client, nil
		}
		client.Close()
		if !speaksOtherwise(err) {
			return nil, fmt.Errorf("cannot find out the API generation (api: auto): %w", err)
		}
		refusals = append(refusals, fmt.Errorf("by API %s: %w", api, err))
	}
	return nil, fmt.Errorf("the service answers by neither API generation (api: auto): %w", errors.Join(refusals...))
}

// speaksOtherwise tells whether an error may mean that the service does not speak the API
// generation that was tried: it refused the request, or the answer is not one of the service.
func speaksOtherwise(err error) bool {
	if refused, ok := errors.AsType[*transport.ServiceError](err); ok {
		return !refused.Temporary()
	}
	_, foreign := errors.AsType[*transport.AnswerError](err)
	return foreign
}
