package v1

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// Results asks for one page of results and decodes it whole (specification,
// section 4.5). The page is the caller's to release.
func (c *Client) Results(ctx context.Context, form string, q extract.ResultsQuery) (*page.Page, error) {
	if err := q.Search.Check(); err != nil {
		return nil, err
	}
	d := newDecoder()
	defer d.release()
	err := c.ask(ctx, call{
		transaction: "Get Results", kind: transport.KindResults, form: form, path: "results", parameters: resultsParameters(q),
	}, &d.Text, func(contentType string) error { return d.decode(contentType, c.bounds) })
	if err != nil {
		return nil, err
	}
	return d.Finish(), nil
}

// Count asks how many results match (specification, section 4.6).
func (c *Client) Count(ctx context.Context, form string, q extract.CountQuery) (int64, error) {
	var count int64
	err := c.askTree(ctx, call{
		transaction: "Get Results Count", kind: transport.KindCount, form: form, path: "results/count", parameters: constrain(q.Window, q.IDs),
	}, func(root *node) error {
		n, err := payload(root, "count")
		if err == nil {
			count, err = number(n.Text, "count")
		}
		return err
	})
	return count, err
}

// Forms lists the account's forms (specification, section 4.2).
func (c *Client) Forms(ctx context.Context) ([]extract.Form, error) {
	var forms []extract.Form
	err := c.askTree(ctx, call{transaction: "Get Forms", kind: transport.KindOther}, func(root *node) error {
		list, err := payload(root, "forms")
		if err != nil {
			return err
		}
		forms = nil
		for _, n := range list.all("form") {
			forms = append(forms, formOf(n))
		}
		return nil
	})
	return forms, err
}

// Status asks for a form's state and quotas (specification, section 4.3).
func (c *Client) Status(ctx context.Context, form string) (extract.Status, error) {
	var status extract.Status
	err := c.askTree(ctx, call{transaction: "Get Form Status", kind: transport.KindOther, form: form, path: "status"}, func(root *node) error {
		n, err := payload(root, "status")
		if err != nil {
			return err
		}
		status = extract.Status{State: trimmed(n, "state"), LastModified: trimmed(n, "last_modified")}
		for _, l := range n.all("limit") {
			used, err := number(trimmed(l, "used"), "used")
			if err != nil {
				return err
			}
			total, err := number(trimmed(l, "total"), "total")
			if err != nil {
				return err
			}
			status.Limits = append(status.Limits, extract.Limit{Type: l.Attrs["type"], Used: used, Total: total})
		}
		return nil
	})
	return status, err
}

// Publish asks for a form's links; secure asks for https ones
// (specification, section 4.4).
func (c *Client) Publish(ctx context.Context, form string, secure bool) (extract.Publish, error) {
	r := call{transaction: "Get Publish", kind: transport.KindOther, form: form, path: "publish"}
	if secure {
		r.parameters = []parameter{{name: "fs_secure", bare: true}}
	}
	var publish extract.Publish
	err := c.askTree(ctx, r, func(root *node) error {
		n, err := payload(root, "publish")
		if err != nil {
			return err
		}
		publish = extract.Publish{}
		for _, u := range n.all("url") {
			publish.URLs = append(publish.URLs, extract.PublishURL{Type: u.Attrs["type"], URL: strings.TrimSpace(u.Text)})
		}
		for _, code := range n.all("code") {
			publish.Codes = append(publish.Codes, strings.TrimSpace(code.Text))
		}
		return nil
	})
	return publish, err
}

// Copy copies a form and describes the new one (specification, section 4.1).
// A copy that may have happened is not asked for again: only answers that
// refuse the request are retried. The error is an *extract.UnclearError then.
func (c *Client) Copy(ctx context.Context, form string, to extract.CopyTarget) (extract.Form, error) {
	r := call{transaction: "Copy Form", kind: transport.KindOther, method: http.MethodPost, form: form, path: "copy"}
	if to.Account != "" {
		r.parameters = append(r.parameters, parameter{name: "fs_destination_account", value: to.Account})
	}
	if to.Form != "" {
		r.parameters = append(r.parameters, parameter{name: "fs_destination_form", value: to.Form})
	}
	var made extract.Form
	err := c.askTree(ctx, r, func(root *node) error {
		n, err := payload(root, "form")
		if err != nil {
			return err
		}
		made = formOf(n)
		return nil
	})
	if transport.MayBeDone(err) {
		err = &extract.UnclearError{Err: err}
	}
	return made, err
}

func formOf(n *node) extract.Form {
	return extract.Form{ID: n.Attrs["id"], Name: trimmed(n, "name"), Description: trimmed(n, "description"), Directory: trimmed(n, "directory")}
}

// payload returns the element that a successful answer must hold.
func payload(root *node, name string) (*node, error) {
	n := root.child(name)
	if n == nil {
		return nil, &transport.AnswerError{Offset: -1, Problem: "it holds no <" + name + "> element"}
	}
	return n, nil
}

func number(text, name string) (int64, error) {
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || v < 0 {
		return 0, &transport.AnswerError{Offset: -1, Problem: "its <" + name + "> is not a number"}
	}
	return v, nil
}

func trimmed(parent *node, name string) string {
	n := parent.child(name)
	if n == nil {
		return ""
	}
	return strings.TrimSpace(n.Text)
}
