package v1

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
)

// Config says which account a Client uses, and how it sends requests.
type Config struct {
	BaseURL   string // HTTPS, or plain HTTP to a loopback address
	Account   string // the account's URL extension
	AllowHTTP bool   // plain HTTP to other hosts too
	transport.Config
}

// Client sends the six transactions of the service for one account
// (specification, section 4). It is safe for concurrent use.
type Client struct {
	*transport.Sender
	forms string // the address of the account's forms
	key   transport.Secret
	most  int64 // size in bytes up to which an answer is read
}

var _ extract.Client = (*Client)(nil)

// NewClient checks the configuration and returns a client. It sends nothing.
func NewClient(cfg Config) (*Client, error) {
	base, err := transport.AccountURL(cfg.BaseURL, cfg.Account, cfg.AllowHTTP, cfg.Key)
	if err != nil {
		return nil, err
	}
	cfg.KeyParameter, cfg.Accept = "fs_api_key", "application/xml, text/xml"
	sender, err := transport.NewSender(cfg.Config)
	if err != nil {
		return nil, err
	}
	return &Client{
		Sender: sender, forms: base.String() + "/api/users/" + transport.Escape(cfg.Account) + "/forms",
		key: cfg.Key, most: maxBytes,
	}, nil
}

// Fork returns a client with counters of its own, see transport.Sender.Fork.
func (c *Client) Fork() extract.Client {
	fork := *c
	fork.Sender = c.Sender.Fork()
	return &fork
}

// PageSize is the most results that one request brings (specification, section 8).
func (c *Client) PageSize() int { return extract.PageSize }

// Generation is v1.
func (c *Client) Generation() string { return "v1" }

// call is one transaction.
type call struct {
	transaction string // as the specification names it (section 4)
	kind        transport.Kind
	method      string // "" is GET
	form        string // "" for Get Forms, which has neither a form nor a path
	path        string // the transaction's name in the address
	parameters  transport.Parameters
	asked       string // see transport.RequestError.Asked
	halved      bool   // see transport.Call
}

// ask sends a transaction. d decodes its answer, and success reads the content
// of an answer that reports no error.
func (c *Client) ask(ctx context.Context, r call, d *decoder, success func() error) error {
	address := c.forms
	if r.path != "" {
		form, err := transport.FormURL(c.forms, r.form)
		if err != nil {
			return err
		}
		address = form + "/" + r.path
	}
	if len(r.parameters) > 0 {
		address += "?" + r.parameters.Query()
	}
	return c.Send(ctx, transport.Call{
		Method: cmp.Or(r.method, http.MethodGet), URL: address, Kind: r.kind,
		Transaction: r.transaction, Form: r.form, Detail: r.parameters.String(), Asked: r.asked, Halved: r.halved,
		Body: &d.Text, MostBytes: c.most,
		Decode: func(h transport.Header) error {
			err := d.decode(h.ContentType, success)
			if s, ok := errors.AsType[*extract.ServiceError](err); ok {
				s.Status, s.RetryAfter, s.Message, s.Sent = h.Status, h.RetryAfter, c.key.Redact(s.Message), c.key.Redact(r.parameters.String())
			}
			return err
		},
	})
}

// askFor sends a transaction with a small answer. A successful answer must hold
// the element. askFor returns what read makes of it.
func askFor[T any](ctx context.Context, c *Client, r call, element string, read func(*node) (T, error)) (value T, err error) {
	d := newDecoder()
	defer d.release()
	err = c.ask(ctx, r, d, func() error {
		root, err := readTree(&d.scan)
		if err != nil {
			return err
		}
		n := root.child(element)
		if n == nil {
			return wrong("it holds no <" + element + "> element")
		}
		value, err = read(n)
		return err
	})
	return value, err
}

// wrong returns the error for a well-formed answer that lacks required content.
func wrong(problem string) error {
	return &transport.AnswerError{Offset: -1, Problem: problem, Fault: transport.FaultWrong, Ours: true}
}
