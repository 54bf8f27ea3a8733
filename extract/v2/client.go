package v2

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// PageSize is the most results that one request brings (service-v2.md, section 4).
const PageSize = 500

// Client sends the requests of API v2 for one account (service-v2.md, section 3). It is
// safe for concurrent use.
type Client struct {
	*transport.Sender
	zone    *time.Location
	learned *learned
}

// learned holds answers that a client and its forks asked for once: labels and choices of forms.
type learned struct {
	labels  memo[labelSet, []page.Heading]
	choices memo[string, map[string]*choices] // by form
}

var _ extract.Client = (*Client)(nil)

// NewClient checks the configuration and returns a client. It sends no request. Dates become
// wall-clock time of zone, the account's time zone.
func NewClient(cfg transport.Config, zone *time.Location) (*Client, error) {
	sender, err := transport.NewSender(cfg, transport.Dialect{Root: "/api/v2", Accept: "application/json"})
	if err != nil {
		return nil, err
	}
	return &Client{sender, zone, &learned{newMemo[labelSet, []page.Heading](), newMemo[string, map[string]*choices]()}}, nil
}

// PageSize is the most results that one request brings.
func (c *Client) PageSize() int { return PageSize }

// Generation is v2.
func (c *Client) Generation() string { return "v2" }

// Fork returns a client with counters of its own, see transport.Sender.Fork.
func (c *Client) Fork() extract.Client {
	fork := *c
	fork.Sender = c.Sender.Fork()
	return &fork
}

// ask sends a request, whose answer is read into body. success decodes the answer if its
// HTTP status reports no error.
func (c *Client) ask(ctx context.Context, call transport.Call, body *[]byte, success func(transport.Header) error) error {
	call.Body = body
	call.Decode = func(h transport.Header) error {
		if h.Status >= http.StatusBadRequest {
			return refusalOf(h.Status, *body)
		}
		return success(h)
	}
	return c.Send(ctx, call)
}

// askFor sends a request whose answer is small. It returns the value that read makes of the answer.
func askFor[T any](ctx context.Context, c *Client, r transport.Call, read func(object) (T, error)) (value T, err error) {
	var body []byte
	err = c.ask(ctx, r, &body, func(transport.Header) error {
		o, err := c.parse(body)
		if err == nil {
			value, err = read(o)
		}
		return err
	})
	return value, err
}

// askForList is askFor for an answer with a list, which is the member of that name.
func askForList[T any](ctx context.Context, c *Client, r transport.Call, member string, read func([]json.RawMessage) T) (T, error) {
	return askFor(ctx, c, r, func(o object) (value T, err error) {
		if o[member] == nil {
			return value, transport.Wrong(`it has no "` + member + `"`)
		}
		return read(listOf(o[member])), nil
	})
}

// parse reads a small answer whose HTTP status reports no error. If the answer has a member error,
// parse returns that error.
func (c *Client) parse(body []byte) (object, error) {
	o, err := parse(body)
	if err != nil {
		return nil, err
	}
	if failure := o["error"]; len(failure) > 0 && failure[0] != 'n' {
		return nil, failureOf(failure)
	}
	return o, nil
}
