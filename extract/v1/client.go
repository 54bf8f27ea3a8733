package v1

import (
	"context"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
)

// Client sends the six transactions of the service for one account
// (specification, section 4). It is safe for concurrent use.
type Client struct{ *transport.Sender }

var _ extract.Client = (*Client)(nil)

// NewClient checks the configuration and returns a client. It sends no request.
func NewClient(cfg transport.Config) (*Client, error) {
	sender, err := transport.NewSender(cfg, transport.Dialect{Root: "/api/users", KeyParameter: "fs_api_key", Accept: "application/xml, text/xml"})
	if err != nil {
		return nil, err
	}
	return &Client{sender}, nil
}

// Fork returns a client with counters of its own, see transport.Sender.Fork.
func (c *Client) Fork() extract.Client {
	return &Client{c.Sender.Fork()}
}

// PageSize is the most results that one request brings (specification, section 8).
func (c *Client) PageSize() int { return extract.PageSize }

// Generation is v1.
func (c *Client) Generation() string { return "v1" }

// askFor sends a transaction whose answer is small. A successful answer must hold the named
// element. askFor returns the value that read makes of that element.
func askFor[T any](ctx context.Context, c *Client, call transport.Call, element string, read func(*node) (T, error)) (value T, err error) {
	d := newDecoder()
	defer d.release()
	call.Body = &d.Text
	call.Decode = func(h transport.Header) error {
		var n *node
		err := d.decode(h.ContentType, func() error {
			root, err := readTree(&d.scan, new(int))
			if err == nil {
				n = root.child(element)
			}
			return err
		})
		if err != nil {
			return err
		}
		if n == nil {
			return transport.Wrong("it has no <" + element + "> element")
		}
		value, err = read(n)
		return err
	}
	err = c.Send(ctx, call)
	return value, err
}
