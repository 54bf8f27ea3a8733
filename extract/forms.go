package extract

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// Form is one form of an account (specification, section 2, "Form").
type Form struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Directory   string `json:"directory"` // names the form in every other transaction
}

// Status says whether a form is open and how much of its quotas is used
// (specification, section 2, "Form status").
type Status struct {
	State        string  `json:"state"`         // open or closed
	LastModified string  `json:"last_modified"` // YYYY-MM-DD HH:MM:SS in the account's zone
	Limits       []Limit `json:"limits"`
}

// Limit is one limited quantity.
type Limit struct {
	Type  string `json:"type"` // items, results
	Used  int64  `json:"used"`
	Total int64  `json:"total"`
}

// Publish holds a form's publishing links and embed codes (specification,
// section 2, "Publish information").
type Publish struct {
	URLs  []PublishURL `json:"urls"`
	Codes []string     `json:"codes"` // HTML
}

// PublishURL is one publishing link.
type PublishURL struct {
	Type string `json:"type"` // normal, printer and others
	URL  string `json:"url"`
}

// CopyTarget says where a copy of a form goes. Empty fields take the
// service's defaults: the current account, the original's name.
type CopyTarget struct {
	Account string // fs_destination_account
	Form    string // fs_destination_form
}

// Forms lists the account's forms (specification, section 4.2).
func (c *Client) Forms(ctx context.Context) ([]Form, error) {
	var forms []Form
	err := c.roundTrip(ctx, call{method: http.MethodGet, transaction: getForms}, c.receive(func(root *node) error {
		list, err := payload(root, "forms")
		if err != nil {
			return err
		}
		forms = nil
		for _, n := range list.all("form") {
			forms = append(forms, formOf(n))
		}
		return nil
	}))
	return forms, err
}

// Status asks for a form's state and quotas (specification, section 4.3).
func (c *Client) Status(ctx context.Context, form string) (Status, error) {
	var status Status
	err := c.roundTrip(ctx, call{method: http.MethodGet, transaction: getStatus, form: form, path: "status"}, c.receive(func(root *node) error {
		n, err := payload(root, "status")
		if err != nil {
			return err
		}
		status = Status{State: trimmed(n, "state"), LastModified: trimmed(n, "last_modified")}
		for _, l := range n.all("limit") {
			kind, _ := l.attr("type")
			used, err := integer(l, "used")
			if err != nil {
				return err
			}
			total, err := integer(l, "total")
			if err != nil {
				return err
			}
			status.Limits = append(status.Limits, Limit{Type: kind, Used: used, Total: total})
		}
		return nil
	}))
	return status, err
}

// Publish asks for a form's links; secure asks for https ones
// (specification, section 4.4).
func (c *Client) Publish(ctx context.Context, form string, secure bool) (Publish, error) {
	r := call{method: http.MethodGet, transaction: getPublish, form: form, path: "publish"}
	if secure {
		r.parameters = []parameter{{name: "fs_secure", bare: true}}
	}
	var publish Publish
	err := c.roundTrip(ctx, r, c.receive(func(root *node) error {
		n, err := payload(root, "publish")
		if err != nil {
			return err
		}
		publish = Publish{}
		for _, u := range n.all("url") {
			kind, _ := u.attr("type")
			publish.URLs = append(publish.URLs, PublishURL{Type: kind, URL: strings.TrimSpace(u.Text)})
		}
		for _, code := range n.all("code") {
			publish.Codes = append(publish.Codes, strings.TrimSpace(code.Text))
		}
		return nil
	}))
	return publish, err
}

// Copy copies a form and describes the new one (specification, section 4.1).
// A copy that may have happened is not asked for again: only answers that
// refuse the request are retried. The error is an *UnclearError then.
func (c *Client) Copy(ctx context.Context, form string, to CopyTarget) (Form, error) {
	r := call{method: http.MethodPost, transaction: copyForm, form: form, path: "copy"}
	if to.Account != "" {
		r.parameters = append(r.parameters, parameter{name: "fs_destination_account", value: to.Account})
	}
	if to.Form != "" {
		r.parameters = append(r.parameters, parameter{name: "fs_destination_form", value: to.Form})
	}
	var made Form
	err := c.roundTrip(ctx, r, c.receive(func(root *node) error {
		n, err := payload(root, "form")
		if err != nil {
			return err
		}
		made = formOf(n)
		return nil
	}))
	if isUnclear(err) {
		err = &UnclearError{Err: err}
	}
	return made, err
}

// isUnclear tells whether a request failed that may have done what it was to
// do: it was sent, and nothing of the service says what became of it.
func isUnclear(err error) bool {
	if n, ok := errors.AsType[*NetworkError](err); ok {
		return !n.Final && !n.unsent
	}
	if s, ok := errors.AsType[*StatusError](err); ok {
		return s.Status != http.StatusTooManyRequests
	}
	if _, elsewhere := errors.AsType[*NotServiceError](err); elsewhere {
		return false
	}
	_, ok := errors.AsType[*AnswerError](err)
	return ok
}

func formOf(n *node) Form {
	id, _ := n.attr("id")
	return Form{ID: id, Name: trimmed(n, "name"), Description: trimmed(n, "description"), Directory: trimmed(n, "directory")}
}

// payload returns the element that a successful answer must hold.
func payload(root *node, name string) (*node, error) {
	n := root.child(name)
	if n == nil {
		return nil, &AnswerError{Offset: -1, Problem: "it holds no <" + name + "> element"}
	}
	return n, nil
}

func integer(parent *node, name string) (int64, error) { return number(trimmed(parent, name), name) }

func number(text, name string) (int64, error) {
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || v < 0 {
		return 0, &AnswerError{Offset: -1, Problem: "its <" + name + "> is not a number"}
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
