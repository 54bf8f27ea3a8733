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

// Results asks for one page of results (specification, section 4.5). The caller
// releases the page.
func (c *Client) Results(ctx context.Context, form string, q extract.ResultsQuery) (*page.Page, error) {
	if err := q.Search.Check(); err != nil {
		return nil, err
	}
	d := newDecoder()
	defer d.release()
	err := c.Send(ctx, transport.Call{
		Transaction: "Get Results", Kind: transport.KindResults, Form: form, Path: "results", Parameters: resultsParameters(q), Asked: q.Asked(), Halved: q.Halved,
		Body: &d.Text, Decode: func(h transport.Header) error { return d.decode(h.ContentType, d.readPage) },
	})
	if err != nil {
		return nil, err
	}
	return d.Finish(), nil
}

// Count asks how many results match (specification, section 4.6).
func (c *Client) Count(ctx context.Context, form string, q extract.CountQuery) (int64, error) {
	return askFor(ctx, c, transport.Call{
		Transaction: "Get Results Count", Kind: transport.KindCount, Form: form, Path: "results/count", Parameters: constrain(q.Window, q.IDs),
	}, "count", func(n *node) (int64, error) { return number("count", n.Text) })
}

// Forms lists the account's forms (specification, section 4.2).
func (c *Client) Forms(ctx context.Context) ([]extract.Form, error) {
	return askFor(ctx, c, transport.Call{Transaction: transport.GetForms, Kind: transport.KindOther}, "forms", func(list *node) (forms []extract.Form, err error) {
		for _, n := range list.all("form") {
			forms = append(forms, formOf(n))
		}
		return forms, nil
	})
}

// Status asks for a form's state and quotas (specification, section 4.3).
func (c *Client) Status(ctx context.Context, form string) (extract.Status, error) {
	r := transport.Call{Transaction: "Get Form Status", Kind: transport.KindOther, Form: form, Path: "status"}
	return askFor(ctx, c, r, "status", func(n *node) (extract.Status, error) {
		status := extract.Status{State: n.textOf("state"), LastModified: n.textOf("last_modified")}
		for _, l := range n.all("limit") {
			used, err := number("used", l.textOf("used"))
			if err != nil {
				return status, err
			}
			total, err := number("total", l.textOf("total"))
			if err != nil {
				return status, err
			}
			status.Limits = append(status.Limits, extract.Limit{Type: l.Attrs["type"], Used: used, Total: total})
		}
		return status, nil
	})
}

// Publish asks for a form's links; secure asks for https ones
// (specification, section 4.4).
func (c *Client) Publish(ctx context.Context, form string, secure bool) (extract.Publish, error) {
	r := transport.Call{Transaction: "Get Publish", Kind: transport.KindOther, Form: form, Path: "publish"}
	if secure {
		r.Parameters = transport.Parameters{{Name: "fs_secure", Bare: true}}
	}
	return askFor(ctx, c, r, "publish", func(n *node) (publish extract.Publish, err error) {
		for _, u := range n.all("url") {
			publish.URLs = append(publish.URLs, extract.PublishURL{Type: u.Attrs["type"], URL: strings.TrimSpace(u.Text)})
		}
		for _, code := range n.all("code") {
			publish.Codes = append(publish.Codes, strings.TrimSpace(code.Text))
		}
		return publish, nil
	})
}

// Copy copies a form and describes the copy (specification, section 4.1). The request is sent
// again only after a refusal. The error is a *transport.Error if the copy may have been made.
func (c *Client) Copy(ctx context.Context, form string, to extract.CopyTarget) (extract.Form, error) {
	r := transport.Call{Transaction: "Copy Form", Kind: transport.KindOther, Method: http.MethodPost, Form: form, Path: "copy"}
	r.Parameters.Add("fs_destination_account", to.Account)
	r.Parameters.Add("fs_destination_form", to.Form)
	made, err := askFor(ctx, c, r, "form", func(n *node) (extract.Form, error) { return formOf(n), nil })
	if transport.MayBeDone(err) {
		err = &transport.Error{Code: 69, Problem: "it is not known whether the copy was made", Remedy: "`formetl forms` shows whether the copy is there; look before you run the command again", Err: err}
	}
	return made, err
}

func formOf(n *node) extract.Form {
	return extract.Form{ID: n.Attrs["id"], Name: n.textOf("name"), Description: n.textOf("description"), Directory: n.textOf("directory")}
}

func number(name, text string) (int64, error) {
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || v < 0 {
		return 0, transport.Wrong("its <" + name + "> is not a number")
	}
	return v, nil
}
