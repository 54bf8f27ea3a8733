package v1

import (
	"context"
	"time"

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

// resultsParameters returns the parameters of Get Results (specification, section 4.5).
func resultsParameters(q extract.ResultsQuery) transport.Parameters {
	ps := constrain(q.Window, q.IDs)
	// The limit is "a number less than 100", with a default of 100. A strict
	// service refuses a limit of 100, so it is left out (specification, section 8).
	if q.Limit < extract.PageSize {
		ps.AddNumber("fs_limit", int64(q.Limit))
	}
	ps.AddNumber("fs_page", int64(q.Page))
	ps.Add("fs_sort", q.Sort)
	ps.Add("fs_sort_direction", q.Direction())
	for _, c := range q.Search.Where {
		ps = append(ps, transport.Parameter{Name: "fs_search_" + string(c.Operator) + "_" + c.Column, Value: c.Term, Bare: c.Operator.Bare()})
	}
	ps.Add("fs_search_method", q.Search.Method())
	ps.Add("fs_view", q.View)
	if q.Headings {
		ps = append(ps, transport.Parameter{Name: "fs_include_headings", Bare: true})
	}
	ps.Add("fs_custom_labels", q.CustomLabels)
	return ps
}

// constrain returns the bounds of results and counts as parameters. Both bounds of the
// service are inclusive, so a window's exclusive end is sent as one second earlier.
func constrain(w extract.Window, ids extract.IDRange) (ps transport.Parameters) {
	if !w.From.IsZero() {
		ps.Add("fs_min_date", w.From.Format(extract.WireTime))
	}
	if !w.To.IsZero() {
		ps.Add("fs_max_date", w.To.Add(-time.Second).Format(extract.WireTime))
	}
	ps.AddNumber("fs_min_id", ids.Min)
	ps.AddNumber("fs_max_id", ids.Max)
	return ps
}
