package v2

import (
	"context"
	"net/http"
	"net/url"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
)

// The requests for webhooks (service-v2.md, section 3), and the only event (section 8).
const (
	getWebhooks   = "Get Webhooks"
	setWebhook    = "Create or update webhook"
	deleteWebhook = "Delete webhook"

	resultCompleted = "result_completed"
)

// Webhooks lists the webhooks of a form.
func (c *Client) Webhooks(ctx context.Context, form string) ([]extract.Webhook, error) {
	return askFor(ctx, c, call{transaction: getWebhooks, kind: transport.KindOther, form: form, path: "webhooks"}, func(o object) ([]extract.Webhook, error) {
		raw := o["webhooks"]
		list := listOf(raw)
		if list == nil && (len(raw) == 0 || raw[0] != 'n') {
			return nil, wrong("it has no list webhooks")
		}
		hooks := make([]extract.Webhook, 0, len(list))
		for _, raw := range list {
			hooks = append(hooks, webhookOf(objectOf(raw)))
		}
		return hooks, nil
	})
}

// SetWebhook adds a webhook, or replaces the one of the URL. Only a refusal lets it be sent
// again. The answer need not describe the webhook (service-v2.md, section 3, confidence B).
func (c *Client) SetWebhook(ctx context.Context, form, address string, key transport.Secret) (extract.Webhook, error) {
	r := call{transaction: setWebhook, method: http.MethodPost, asked: "the webhook's URL", hidden: append(hiding(address), key)}
	r.fields.Add("event", resultCompleted)
	r.fields.Add("url", address)
	r.fields.AddSecret("handshake_key", key)
	w := extract.Webhook{Event: resultCompleted, URL: address, Keyed: !key.IsZero()}
	err := c.change(ctx, form, r, "the webhook was added", func(o object) {
		if made := webhookOf(o); made.URL != "" {
			w = made
		}
	})
	return w, err
}

// RemoveWebhook removes the webhook of a URL. Only a refusal lets it be sent again. What
// the answer holds is not known (service-v2.md, section 3).
func (c *Client) RemoveWebhook(ctx context.Context, form, address string) error {
	r := call{transaction: deleteWebhook, method: http.MethodDelete, hidden: hiding(address)}
	r.parameters.Add("url", address)
	return c.change(ctx, form, r, "the webhook was removed", func(object) {})
}

// change sends a change of a form's webhooks. An answer with HTTP status 204 holds nothing.
func (c *Client) change(ctx context.Context, form string, r call, done string, read func(object)) error {
	r.kind, r.form, r.path = transport.KindOther, form, "webhooks"
	var body []byte
	err := c.ask(ctx, r, &body, func(h transport.Header) error {
		if h.Status == http.StatusNoContent {
			return nil
		}
		o, err := c.parse(body)
		if err == nil {
			read(o)
		}
		return err
	})
	if transport.MayBeDone(err) {
		err = &extract.UnclearError{Err: err, Done: done, Look: "formetl webhooks list"}
	}
	return err
}

// hiding returns what of a webhook's URL no error and no log may show: the URL, and its
// query and user alone.
func hiding(address string) []transport.Secret {
	hidden := []transport.Secret{transport.NewSecret(address)}
	if u, err := url.Parse(address); err == nil {
		hidden = append(hidden, transport.NewSecret(u.RawQuery), transport.NewSecret(u.User.String()))
	}
	return hidden
}

// webhookOf reads a webhook, which may be the member webhook of an object (service-v2.md,
// section 8). The handshake key is not kept.
func webhookOf(o object) extract.Webhook {
	if o["webhook"] != nil {
		o = objectOf(o["webhook"])
	}
	return extract.Webhook{Event: o.text("event"), URL: o.text("url"), Keyed: o.text("handshake_key") != ""}
}
