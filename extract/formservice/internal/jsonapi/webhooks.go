package jsonapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/formetl/formetl/extract/formservice/internal/query"
)

const (
	onlyEvent   = "result_completed"
	longestBody = 64 << 10
)

// Webhook is one address that is to be told of results.
type Webhook struct{ Event, URL, HandshakeKey string }

// Hooks holds the webhooks of all forms, by directory. The zero value holds
// none; it is safe for concurrent use.
type Hooks struct {
	mu    sync.Mutex
	lists map[string][]Webhook
}

// Of returns the webhooks of a form in the order of their creation.
func (h *Hooks) Of(form string) []Webhook {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lists[form])
}

// put adds a webhook or replaces the one of its URL.
func (h *Hooks) put(form string, hook Webhook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lists == nil {
		h.lists = make(map[string][]Webhook)
	}
	list := h.lists[form]
	if i := slices.IndexFunc(list, func(o Webhook) bool { return o.URL == hook.URL }); i >= 0 {
		list[i] = hook
		return
	}
	h.lists[form] = append(list, hook)
}

// remove tells whether there was a webhook of that URL.
func (h *Hooks) remove(form, address string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := len(h.lists[form])
	if before == 0 {
		return false
	}
	h.lists[form] = slices.DeleteFunc(h.lists[form], func(o Webhook) bool { return o.URL == address })
	return len(h.lists[form]) < before
}

// webhooks lists, adds and removes the webhooks of a form.
func (s *Service) webhooks(w *Writer, r *http.Request, pairs []query.Pair, form *Form) error {
	switch r.Method {
	case http.MethodPost:
		return s.addWebhook(w, r, pairs, form)
	case http.MethodDelete:
		return s.removeWebhook(r, pairs, form)
	}
	if err := s.only(pairs); err != nil {
		return err
	}
	w.key("webhooks")
	w.open('[')
	for _, hook := range s.Hooks.Of(form.Directory) {
		w.webhook(hook)
	}
	w.close(']')
	return nil
}

func (w *Writer) webhook(hook Webhook) {
	w.open('{')
	w.member("event", hook.Event)
	w.member("url", hook.URL)
	if hook.HandshakeKey != "" {
		w.member("handshake_key", hook.HandshakeKey)
	}
	w.close('}')
}

func (s *Service) addWebhook(w *Writer, r *http.Request, pairs []query.Pair, form *Form) error {
	if err := s.only(pairs); err != nil {
		return err
	}
	hook, err := s.readWebhook(r)
	if err != nil {
		return err
	}
	if hook.Event != onlyEvent {
		return invalid("event: %q is not %s", hook.Event, onlyEvent)
	}
	address, err := url.Parse(hook.URL)
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		return invalid("url: %q is not a web address", hook.URL)
	}
	s.Hooks.put(form.Directory, hook)
	w.key("webhook")
	w.webhook(hook)
	return nil
}

// removeWebhook takes the URL from the query or, if that has none, from the
// body.
func (s *Service) removeWebhook(r *http.Request, pairs []query.Pair, form *Form) error {
	if err := s.only(pairs, "url"); err != nil {
		return err
	}
	var address string
	if i := slices.IndexFunc(pairs, func(p query.Pair) bool { return p.Name == "url" }); i >= 0 {
		address = pairs[i].Value
	} else {
		hook, err := s.readWebhook(r)
		if err != nil {
			return err
		}
		address = hook.URL
	}
	if address == "" {
		return invalid("url is missing")
	}
	if !s.Hooks.remove(form.Directory, address) {
		return &Refusal{Status: http.StatusNotFound, Message: "Path or object not found: no webhook of that url"}
	}
	return nil
}

// readWebhook reads the fields of a request's body: a form, a JSON object, or
// one within "webhook".
func (s *Service) readWebhook(r *http.Request) (Webhook, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, longestBody+1))
	if err != nil || len(body) > longestBody {
		return Webhook{}, invalid("the body is cut or longer than %d bytes", longestBody)
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/x-www-form-urlencoded":
		return s.webhookForm(string(body))
	case err == nil && kind == "application/json":
		return s.webhookJSON(body)
	}
	return Webhook{}, invalid("the body is neither application/x-www-form-urlencoded nor application/json")
}

func (s *Service) webhookForm(body string) (Webhook, error) {
	values, err := url.ParseQuery(body)
	if err != nil {
		return Webhook{}, invalid("the body: %v", err)
	}
	var hook Webhook
	for name, list := range values {
		field := map[string]*string{"event": &hook.Event, "url": &hook.URL, "handshake_key": &hook.HandshakeKey}[name]
		switch {
		case field == nil && !s.Loose:
			return Webhook{}, invalid("%s is not a field of a webhook", name)
		case len(list) > 1:
			return Webhook{}, invalid("%s is given twice", name)
		case field != nil:
			*field = list[0]
		}
	}
	return hook, nil
}

func (s *Service) webhookJSON(body []byte) (Webhook, error) {
	type fields struct {
		Event        string `json:"event"`
		URL          string `json:"url"`
		HandshakeKey string `json:"handshake_key"`
	}
	var read struct {
		fields
		Webhook *fields `json:"webhook"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if !s.Loose {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&read); err != nil {
		return Webhook{}, invalid("the body: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Webhook{}, invalid("the body goes on after its object")
	}
	if read.Webhook != nil {
		return Webhook(*read.Webhook), nil
	}
	return Webhook(read.fields), nil
}
