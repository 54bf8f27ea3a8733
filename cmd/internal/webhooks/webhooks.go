// Package webhooks lists a form's webhooks and changes them for a person. Before a change
// it looks what is there and asks. Where the outcome is not clear, it looks again.
//
// Nothing that it says holds a webhook's URL, which may hold a secret. Only the lists do,
// which are the commands' output. Begin reading at Change.Make.
package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

// List returns the webhooks of a form.
func List(ctx context.Context, client extract.Client, form string) ([]extract.Webhook, error) {
	can, err := of(client)
	if err != nil {
		return nil, err
	}
	hooks, err := can.Webhooks(ctx, form)
	return append([]extract.Webhook{}, hooks...), err // none is [] and not null
}

func of(client extract.Client) (extract.Webhooks, error) {
	if can, ok := client.(extract.Webhooks); ok {
		return can, nil
	}
	return nil, &extract.LacksError{Generation: "this generation of the service", Transaction: "list or change webhooks"}
}

// Rows is a table of webhooks.
func Rows(hooks ...extract.Webhook) [][]string {
	return show.Rows([][]string{{"EVENT", "URL", "HANDSHAKE KEY"}}, hooks, func(w extract.Webhook) []string {
		return []string{w.Event, w.URL, map[bool]string{true: "set", false: "none"}[w.Keyed]}
	})
}

// Change is a webhook that a person wants to be added or removed.
type Change struct {
	Form         string
	Remove       bool
	Key          transport.Secret                                         // the handshake key, after Check
	Agree        func(ctx context.Context, question string) (bool, error) // nil: the person has agreed
	Note         func(format string, args ...any)                         // of what is not certain
	url, keyFile string
}

// Register adds the flags.
func (c *Change) Register(f *pflag.FlagSet) {
	f.StringVar(&c.url, "url", "", "the webhook's address")
	if !c.Remove {
		f.StringVar(&c.keyFile, "handshake-key-file", "", "file that holds the handshake key, which the service sends with each result")
	}
}

// Check checks the flags, and reads the handshake key. Results are personal data, so new
// addresses are https, or on this machine. No error holds the address.
func (c *Change) Check() error {
	c.url = strings.TrimSpace(c.url)
	u, err := url.Parse(c.url)
	switch {
	case c.url == "":
		return errors.New("no webhook: give its address by --url; `formetl webhooks list` shows those that are there")
	case c.Remove: // whoever added it may have had other rules
		return nil
	case err != nil || u.Host == "":
		return errors.New("--url: it is no web address; give it as https://host/path")
	case u.Scheme != "https" && (u.Scheme != "http" || !transport.IsLoopback(u.Hostname())):
		return errors.New("--url: results would be sent unencrypted; give an https address, or http to this machine alone")
	case c.keyFile == "":
		return nil
	}
	if c.Key, err = definition.KeyFromFile(c.keyFile); err != nil {
		return fmt.Errorf("--handshake-key-file: %w; give the path of a file that holds nothing but the key", err)
	}
	return nil
}

// Make makes the change and returns the webhook that was added or removed, nil if the
// person did not agree. The error is an *extract.NoWebhookError if none of the URL is there
// to be removed.
func (c *Change) Make(ctx context.Context, client extract.Client) (*extract.Webhook, error) {
	can, err := of(client)
	if err != nil {
		return nil, err
	}
	before, known, err := c.look(ctx, can)
	if err != nil {
		return nil, err
	}
	if c.Remove && known && before == nil {
		return nil, &extract.NoWebhookError{Form: c.Form}
	}
	if c.Agree != nil {
		if agreed, err := c.Agree(ctx, c.question(before != nil)); err != nil || !agreed {
			return nil, err
		}
	}
	w, err := c.send(ctx, can)
	refused, _ := errors.AsType[*extract.ServiceError](err)
	_, unclear := errors.AsType[*extract.UnclearError](err)
	switch {
	case c.Remove && known && refused != nil && refused.Code == extract.CodeInvalidForm: // the form is there
		return nil, &extract.NoWebhookError{Form: c.Form}
	case unclear && known && (before != nil) == c.Remove: // a list then tells what became of it
		if now, known, lookErr := c.look(ctx, can); lookErr == nil && known && (now == nil) == c.Remove {
			c.Note("note: %v; but the list of webhooks shows that it was done", errors.Unwrap(err))
			w, err = now, nil
		}
	}
	if c.Remove && before != nil {
		w = before
	}
	return w, err
}

// look returns the webhook of the URL, nil if there is none. It is not known if the service
// answers otherwise than is guessed (service-v2.md, section 3, confidence B).
func (c *Change) look(ctx context.Context, can extract.Webhooks) (w *extract.Webhook, known bool, err error) {
	hooks, err := can.Webhooks(ctx, c.Form)
	if e, ok := errors.AsType[*transport.AnswerError](err); ok && e.Ours {
		c.Note("note: which webhooks form %s has is not known: %v", c.Form, err)
		return nil, false, nil
	}
	if i := slices.IndexFunc(hooks, func(w extract.Webhook) bool { return w.URL == c.url }); i >= 0 {
		w = &hooks[i]
	}
	return w, err == nil, err
}

func (c *Change) send(ctx context.Context, can extract.Webhooks) (*extract.Webhook, error) {
	if c.Remove {
		return &extract.Webhook{URL: c.url}, can.RemoveWebhook(ctx, c.Form, c.url)
	}
	w, err := can.SetWebhook(ctx, c.Form, c.url, c.Key)
	return &w, err
}

// question names the host of the URL, and not what may be secret.
func (c *Change) question(there bool) string {
	act := "Add a"
	switch {
	case c.Remove:
		act = "Remove the"
	case there:
		act = "Replace the"
	}
	at := ""
	if u, err := url.Parse(c.url); err == nil {
		at = " at " + plain.Line(u.Host)
	}
	return fmt.Sprintf("%s webhook%s of form %s? [y/N] ", act, at, plain.Line(c.Form))
}
