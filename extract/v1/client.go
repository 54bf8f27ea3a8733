package v1

import (
	"context"
	"errors"

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
	most int64 // size in bytes up to which an answer is read
}

var _ extract.Client = (*Client)(nil)

// NewClient checks the configuration and returns a client. It sends nothing.
func NewClient(cfg Config) (*Client, error) {
	base, err := transport.AccountURL(cfg.BaseURL, cfg.Account, cfg.AllowHTTP, cfg.Key)
	if err != nil {
		return nil, err
	}
	cfg.Forms = base.String() + "/api/users/" + transport.Escape(cfg.Account) + "/forms"
	cfg.KeyParameter, cfg.Accept = "fs_api_key", "application/xml, text/xml"
	sender, err := transport.NewSender(cfg.Config)
	if err != nil {
		return nil, err
	}
	return &Client{Sender: sender, most: maxBytes}, nil
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

// ask sends a transaction. d decodes its answer, and success reads the content
// of an answer that reports no error.
func (c *Client) ask(ctx context.Context, call transport.Call, d *decoder, success func() error) error {
	call.Body, call.MostBytes = &d.Text, c.most
	call.Decode = func(h transport.Header) error {
		err := d.decode(h.ContentType, success)
		if s, ok := errors.AsType[*extract.ServiceError](err); ok {
			s.Status, s.RetryAfter, s.Message, s.Sent = h.Status, h.RetryAfter, c.Redact(s.Message), c.Redact(call.Parameters.String())
		}
		return err
	}
	return c.Send(ctx, call)
}

// askFor sends a transaction with a small answer. A successful answer must hold
// the element. askFor returns what read makes of it.
func askFor[T any](ctx context.Context, c *Client, r transport.Call, element string, read func(*node) (T, error)) (value T, err error) {
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
