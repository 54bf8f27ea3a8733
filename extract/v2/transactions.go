package v2

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// generation names API v2 in errors.
const generation = "API v2"

// The requests, as the service names them (service-v2.md, section 3).
const (
	getForm    = "Get Form"
	getItems   = "Get Form Items"
	getResults = "Get Form Results"
)

// Results asks for one page of results (service-v2.md, section 4). With q.Headings the
// page holds the labels of the form's items, which the client asks for once for each form.
// The caller releases the page. The error is a *transport.Error if the service cannot
// express the search.
func (c *Client) Results(ctx context.Context, form string, q extract.ResultsQuery) (*page.Page, error) {
	var last string
	p, err := c.results(ctx, transport.KindResults, form, q, func(h transport.Header) { last = h.Fields.Get(lastPage) })
	if err != nil {
		return nil, err
	}
	n, none := strconv.ParseInt(strings.TrimSpace(last), 10, 64)
	p.Ends = none == nil && n <= int64(max(1, q.Page))
	if !q.Headings {
		return p, nil
	}
	headings, err := c.headings(ctx, form, q.CustomLabels)
	if err != nil {
		p.Release()
		return nil, err
	}
	for _, h := range headings {
		if q.View == "" || shows(p, h.ID) {
			p.Headings = append(p.Headings, h)
		}
	}
	return p, nil
}

// shows tells whether any result of a page has an item. The service sends the labels of all items
// of the form, and only the results tell which items a view shows.
func shows(p *page.Page, item string) bool {
	return slices.ContainsFunc(p.Fields, func(f page.Field) bool { return f.Kind == page.KindItem && f.ID == item })
}

// results asks for one page of results. kind says how the request is counted, and look is given the
// headers of the answer.
func (c *Client) results(ctx context.Context, kind transport.Kind, form string, q extract.ResultsQuery, look func(transport.Header)) (*page.Page, error) {
	if err := q.Search.Check(); err != nil {
		return nil, err
	}
	var err error
	if q.Search, err = c.translate(ctx, form, q.Search); err != nil {
		return nil, err
	}
	d := newDecoder(c.zone)
	defer d.release()
	d.early = secondBefore(q.Window, c.zone)
	r := transport.Call{Transaction: getResults, Kind: kind, Form: form, Path: "results", Parameters: resultsParameters(q, c.zone), Asked: asked(q), Halved: q.Halved}
	err = c.ask(ctx, r, &d.Text, func(h transport.Header) error {
		look(h)
		return d.decode()
	})
	if err != nil {
		return nil, err
	}
	p := d.Finish()
	markUnfinished(p, d.begun)
	return p, nil
}

// asked names what restricts the results besides range and page. Custom labels are left out,
// because API v2 asks for them by another request (headings).
func asked(q extract.ResultsQuery) string {
	q.CustomLabels = ""
	return q.Asked()
}

// Headers of an answer with results (service-v2.md, section 5).
const (
	lastPage  = "Pagination-Page-Last"
	pageLimit = "Pagination-Limit"
)

// Count asks how many results match. The service has no such request. On pages of one
// result, the number of the last page is the number of results (service-v2.md, section 9,
// confidence C). The error wraps extract.ErrNoCount if the answer does not tell.
func (c *Client) Count(ctx context.Context, form string, q extract.CountQuery) (int64, error) {
	n, err := c.count(ctx, form, q)
	if errors.Is(err, extract.ErrNoCount) {
		return c.count(ctx, form, q) // a proxy may have sent the first answer, so ask once more
	}
	return n, err
}

func (c *Client) count(ctx context.Context, form string, q extract.CountQuery) (int64, error) {
	var last, limit string
	p, err := c.results(ctx, transport.KindCount, form, extract.ResultsQuery{Window: q.Window, IDs: q.IDs, Limit: 1}, func(h transport.Header) {
		last, limit = h.Fields.Get(lastPage), h.Fields.Get(pageLimit)
	})
	if err != nil {
		return 0, err
	}
	defer p.Release()
	n, err := counted(p.Len(), strings.TrimSpace(last), strings.TrimSpace(limit))
	if err != nil {
		return 0, fmt.Errorf("form %s: %w", form, err)
	}
	return n, nil
}

// counted returns how many results match, if a page that was asked for with a limit of one
// holds this many results and has these headers: the last page, and the limit.
func counted(results int, last, limit string) (int64, error) {
	n, err := strconv.ParseInt(last, 10, 64)
	switch {
	case results > 1 || limit != "" && limit != "1":
		return 0, fmt.Errorf("%w: asked for one result (limit=1), it sends several", extract.ErrNoCount)
	case results == 0 && (last == "" || err == nil && 0 <= n && n <= 1):
		return 0, nil // with no results the last page is missing, 0 or 1
	case last == "":
		return 0, fmt.Errorf("%w: the header %s is missing", extract.ErrNoCount, lastPage)
	case err != nil || n < 1 || results == 0:
		return 0, fmt.Errorf("%w: the header %s is not the number of a page", extract.ErrNoCount, lastPage)
	}
	return n, nil
}

// Forms lists the account's forms (service-v2.md, sections 3 and 6). They have no ID but
// their Directory.
func (c *Client) Forms(ctx context.Context) ([]extract.Form, error) {
	return askForList(ctx, c, transport.Call{Transaction: transport.GetForms, Kind: transport.KindOther}, "forms", func(list []json.RawMessage) (forms []extract.Form) {
		for _, raw := range list {
			f := objectOf(raw)
			forms = append(forms, extract.Form{ID: f.text("id"), Name: f.text("name"), Description: f.text("description"), Directory: f.text("directory")})
		}
		return forms
	})
}

// Status asks for a form's state and for how many results it has. A Total of 0 means that
// the service names no quota.
func (c *Client) Status(ctx context.Context, form string) (extract.Status, error) {
	return formOf(ctx, c, form, func(f object) (extract.Status, error) {
		status := extract.Status{State: f.text("state")}
		if n, ok := objectOf(f["stats"]).number("resultsCount", "results_count"); ok {
			status.Limits = append(status.Limits, extract.Limit{Type: "results", Used: n})
		}
		return status, nil
	})
}

// Publish asks for a form's links. All links are as the service gives them, so secure has no
// effect.
func (c *Client) Publish(ctx context.Context, form string, _ bool) (extract.Publish, error) {
	return formOf(ctx, c, form, func(f object) (publish extract.Publish, err error) {
		o := objectOf(f["publish"])
		if link := o.text("link"); link != "" {
			publish.URLs = append(publish.URLs, extract.PublishURL{Type: "normal", URL: link})
		}
		codes := listOf(o["embed_code"])
		if codes == nil {
			codes = append(codes, o["embed_code"])
		}
		for _, raw := range codes {
			if code := strings.TrimSpace(textOf(raw)); code != "" {
				publish.Codes = append(publish.Codes, code)
			}
		}
		return publish, nil
	})
}

// Copy sends nothing: it always returns a *transport.Error, because API v2 has no request for
// copying a form.
func (c *Client) Copy(context.Context, string, extract.CopyTarget) (extract.Form, error) {
	return extract.Form{}, &transport.Error{
		Code: 64, Problem: generation + " cannot copy forms",
		Remedy: otherGeneration,
	}
}

// formOf asks for one form. The answer is a list with the form, an object with a member form, or
// the form itself (service-v2.md, section 3, confidence C).
func formOf[T any](ctx context.Context, c *Client, form string, read func(object) (T, error)) (T, error) {
	return askFor(ctx, c, transport.Call{Transaction: getForm, Kind: transport.KindOther, Form: form}, func(o object) (T, error) {
		f := o
		if o["form"] != nil {
			f = objectOf(o["form"])
		}
		if list := listOf(o["forms"]); len(list) > 0 {
			f = pick(list, form)
		}
		if f["directory"] == nil && f["state"] == nil && f["name"] == nil {
			var none T
			return none, transport.Wrong("it does not describe a form")
		}
		return read(f)
	})
}

// pick returns the form with this directory from a list, or the first form if there is none.
func pick(list []json.RawMessage, directory string) object {
	for _, raw := range list {
		if f := objectOf(raw); f.text("directory") == directory {
			return f
		}
	}
	return objectOf(list[0])
}
