package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
)

const hook = "https://hooks.example.com/x?token=s3cret"

// service is a client whose webhooks are those of one form.
type service struct {
	extract.Client
	hooks   []extract.Webhook
	unread  bool  // its list cannot be read
	does    bool  // changes are carried out
	answers error // to changes
	asked   []string
}

func (s *service) Webhooks(context.Context, string) ([]extract.Webhook, error) {
	s.asked = append(s.asked, "list")
	if s.unread {
		return nil, &transport.RequestError{Err: &transport.AnswerError{Ours: true, Problem: "p"}}
	}
	return slices.Clone(s.hooks), nil
}

func (s *service) SetWebhook(_ context.Context, _, url string, key transport.Secret) (extract.Webhook, error) {
	s.asked = append(s.asked, "set")
	w := extract.Webhook{Event: "result_completed", URL: url, Keyed: !key.IsZero()}
	if s.does {
		s.hooks = append(s.hooks, w)
	}
	return w, s.answers
}

func (s *service) RemoveWebhook(_ context.Context, _, url string) error {
	s.asked = append(s.asked, "remove")
	if s.does {
		s.hooks = slices.DeleteFunc(s.hooks, func(w extract.Webhook) bool { return w.URL == url })
	}
	return s.answers
}

// TestMake looks, changes, and looks again where the outcome is not clear.
func TestMake(t *testing.T) {
	there := []extract.Webhook{{Event: "result_completed", URL: hook, Keyed: true}}
	unclear := &extract.UnclearError{Err: &transport.NetworkError{Problem: "cut"}}
	gone := &transport.RequestError{Err: &extract.ServiceError{Code: extract.CodeInvalidForm}}
	for name, c := range map[string]struct {
		remove bool
		at     service
		asked  string
		want   error // the error's type
		warns  string
	}{
		"add":                          {false, service{does: true}, "list set", nil, ""},
		"replace":                      {false, service{hooks: there, does: true}, "list set", nil, ""},
		"add, unclear and done":        {false, service{does: true, answers: unclear}, "list set list", nil, "cut; but the list of webhooks shows that it was done"},
		"add, unclear":                 {false, service{answers: unclear}, "list set list", unclear, ""},
		"replace, unclear":             {false, service{hooks: there, answers: unclear}, "list set", unclear, ""},
		"add, list unread":             {false, service{unread: true}, "list set", nil, "is not known"},
		"add, list unread and unclear": {false, service{unread: true, answers: unclear}, "list set", unclear, "is not known"},
		"add, refused":                 {false, service{answers: gone}, "list set", gone, ""},
		"remove":                       {true, service{hooks: there, does: true}, "list remove", nil, ""},
		"remove none":                  {true, service{}, "list", &extract.NoWebhookError{}, ""},
		"remove, gone since":           {true, service{hooks: there, answers: gone}, "list remove", &extract.NoWebhookError{}, ""},
		"remove, list unread":          {true, service{unread: true}, "list remove", nil, "is not known"},
		"remove, unclear and done":     {true, service{hooks: there, does: true, answers: unclear}, "list remove list", nil, "cut"},
		"remove, unclear":              {true, service{hooks: there, answers: unclear}, "list remove list", unclear, ""},
	} {
		warned := ""
		c.at.hooks = slices.Clone(c.at.hooks)
		change := &Change{Form: "f", Remove: c.remove, url: hook, Note: func(format string, args ...any) { warned += fmt.Sprintf(format, args...) }}
		w, err := change.Make(t.Context(), &c.at)
		if fmt.Sprintf("%T", err) != fmt.Sprintf("%T", c.want) || strings.Join(c.at.asked, " ") != c.asked || (c.warns == "") != (warned == "") || !strings.Contains(warned, c.warns) {
			t.Errorf("%s: asked %v, warned %q: %v", name, c.at.asked, warned, err)
		}
		if err == nil && (w == nil || w.URL != hook) {
			t.Errorf("%s: %+v", name, w)
		}
		if strings.Contains(fmt.Sprint(warned, err), "s3cret") {
			t.Errorf("%s: the URL is told: %q, %v", name, warned, err)
		}
	}
	var other struct{ extract.Client }
	if _, err := List(t.Context(), other, "f"); !errors.As(err, new(*extract.LacksError)) {
		t.Errorf("err = %v", err)
	}
}

// TestAgree holds that nothing is changed without consent, and what the question holds.
func TestAgree(t *testing.T) {
	for _, c := range []struct {
		remove bool
		hooks  []extract.Webhook
		want   string
	}{
		{false, nil, "Add a webhook at hooks.example.com of form f? [y/N] "},
		{false, []extract.Webhook{{URL: hook}}, "Replace the webhook at hooks.example.com of form f? [y/N] "},
		{true, []extract.Webhook{{URL: hook}}, "Remove the webhook at hooks.example.com of form f? [y/N] "},
	} {
		s, asked := &service{hooks: c.hooks}, ""
		change := &Change{Form: "f", Remove: c.remove, url: hook, Agree: func(_ context.Context, question string) (bool, error) { asked = question; return false, nil }}
		if w, err := change.Make(t.Context(), s); w != nil || err != nil || asked != c.want || len(s.asked) != 1 {
			t.Errorf("%q, %v, %v: %v", asked, s.asked, w, err)
		}
	}
}

// TestCheck: new webhooks are sent to over HTTPS, or to this machine.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		url    string
		remove bool
		wrong  string
	}{
		{"https://x.example/?s3cret", false, ""},
		{" https://x.example/?s3cret ", false, ""},
		{"http://127.0.0.1:80/?s3cret", false, ""},
		{"http://localhost/?s3cret", false, ""},
		{"http://[::1]/?s3cret", false, ""},
		{"http://x.example/?s3cret", true, ""},
		{"s3cret", true, ""},
		{"", true, "no webhook"},
		{"", false, "no webhook"},
		{"s3cret", false, "no web address"},
		{"https:///s3cret", false, "no web address"},
		{"https://x.example/%zzs3cret", false, "no web address"},
		{"http://x.example/?s3cret", false, "unencrypted"},
		{"ftp://127.0.0.1/?s3cret", false, "unencrypted"},
	} {
		change := &Change{Remove: c.remove}
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		change.Register(set)
		if err := set.Parse([]string{"--url", c.url}); err != nil {
			t.Fatal(err)
		}
		err := change.Check()
		if (err == nil) != (c.wrong == "") || err != nil && (!strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%q: %v", c.url, err)
		}
		if err == nil && change.url != strings.TrimSpace(c.url) {
			t.Errorf("%q is %q", c.url, change.url)
		}
	}
}
