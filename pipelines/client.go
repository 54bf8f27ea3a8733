package pipelines

import (
	"cmp"
	"context"
	"errors"
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
		BaseURL: s.BaseURL, Account: s.Account, AllowHTTP: s.AllowHTTP, Key: s.Key, ListForms: def.Command("forms"),
		Timeout: s.Requests.Timeout, Retries: s.Requests.Retries, Concurrency: s.Requests.Concurrency,
		Budget:     requests,
		BackoffMin: o.Client.BackoffMin, BackoffMax: o.Client.BackoffMax, Patience: cmp.Or(o.Client.Patience, s.Requests.Patience),
		Logger: o.Logger, Contact: o.Client.Contact, Transport: o.Client.Transport, UserAgent: o.Client.UserAgent,
	}
	if api == definition.APIv2 {
		cfg.Unsure = s.API == definition.APIAuto
		return v2.NewClient(cfg, s.Zone)
	}
	return v1.NewClient(cfg)
}

// automatic makes a client of the API generation that the service speaks, and writes it into the
// definition, so that the service is asked once. It tries v2 first, because its pages are longer.
// That is one request. If the service refuses it, such as for the key, v1 is tried by one more.
// A search that v2 cannot express is left to v1.
func automatic(ctx context.Context, def *definition.Definition, o Options) (extract.Client, error) {
	if !v2.Searches(def.Extract.Search) {
		def.Source.SetAPI(definition.APIv1)
		o.Logger.LogAttrs(ctx, slog.LevelWarn, "API v2 cannot do this search, so API v1 is asked: no result is missing; as always by API v1, texts that people typed beside choices stand in the column of the choices, not in one of their own")
		return newClient(ctx, def, definition.APIv1, o)
	}
	client, err := newClient(ctx, def, definition.APIv2, o)
	if err != nil {
		return nil, err
	}
	_, refusal := client.Forms(ctx)
	if refusal != nil {
		client.Close()
		if transport.Temporary(refusal) {
			return nil, refusal
		}
		other := *def
		other.Source.SetAPI(definition.APIv1)
		if client, err = newClient(ctx, &other, definition.APIv1, o); err != nil {
			return nil, err
		}
		if isError[*transport.ServiceError](refusal) {
			if _, err := client.Forms(ctx); err != nil {
				if client.Close(); transport.Temporary(err) {
					return nil, err
				}
				return nil, refusal
			}
		}
	}
	def.Source.SetAPI(definition.API(client.Generation()))
	o.Logger.LogAttrs(ctx, slog.LevelInfo, "formetl asks the service by API "+client.Generation(), slog.String("api", client.Generation()))
	return client, nil
}
