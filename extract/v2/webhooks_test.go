package v2_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	v2 "github.com/formetl/formetl/extract/v2"
)

const (
	// hook holds a query that no error and no log may hold.
	hook  = "https://user:p4ss@hooks.example.com/a b?form=f&token=qu3ry"
	shake = "sh4ke+k3y &"
)

// withService returns a client of the test service, and the service.
func withService(t *testing.T, change func(*v2.Config)) (*v2.Client, *formservice.Server) {
	t.Helper()
	service := &formservice.Server{API: formservice.V2, Key: canary, Forms: []*formservice.Form{formservice.NewForm("f", nil, nil)}}
	return serve(t, service.ServeHTTP, change), service
}

// changes are the requests that change something, by method.
func changes(c *v2.Client, t *testing.T) map[string]func() error {
	return map[string]func() error{
		http.MethodPost: func() error {
			_, err := c.SetWebhook(t.Context(), "f", hook, transport.NewSecret(shake))
			return err
		},
		http.MethodDelete: func() error { return c.RemoveWebhook(t.Context(), "f", hook) },
	}
}

// TestWebhooks lists, adds, replaces and removes at the test service.
func TestWebhooks(t *testing.T) {
	c, service := withService(t, nil)
	if hooks, err := c.Webhooks(t.Context(), "f"); err != nil || len(hooks) != 0 {
		t.Fatalf("%v, %v", hooks, err)
	}
	for _, key := range []string{"", shake} {
		want := extract.Webhook{Event: "result_completed", URL: hook, Keyed: key != ""}
		got, err := c.SetWebhook(t.Context(), "f", hook, transport.NewSecret(key))
		if err != nil || got != want {
			t.Errorf("%+v, %v", got, err)
		}
		if there := service.Webhooks("f"); len(there) != 1 || there[0] != (formservice.Webhook{Event: "result_completed", URL: hook, HandshakeKey: key}) {
			t.Errorf("the service holds %+v", there)
		}
		if hooks, err := c.Webhooks(t.Context(), "f"); err != nil || len(hooks) != 1 || hooks[0] != want {
			t.Errorf("%+v, %v", hooks, err)
		}
	}
	if err := c.RemoveWebhook(t.Context(), "f", hook); err != nil || len(service.Webhooks("f")) != 0 {
		t.Error(err)
	}
	if err := c.RemoveWebhook(t.Context(), "f", hook); !isCode(err, extract.CodeInvalidForm) {
		t.Errorf("err = %v", err)
	}
	if _, err := c.SetWebhook(t.Context(), "gone", hook, transport.Secret{}); !isCode(err, extract.CodeInvalidForm) {
		t.Errorf("err = %v", err)
	}
}

// TestWebhookShapes: of the answers, only that the list is a list is relied on.
func TestWebhookShapes(t *testing.T) {
	const one = `{"event":"result_completed","url":"https://x.example","handshake_key":"k"}`
	want := extract.Webhook{Event: "result_completed", URL: "https://x.example", Keyed: true}
	for body, n := range map[string]int{
		`{"webhooks":[` + one + `]}`: 1, `{"webhooks":[{"webhook":` + one + `}]}`: 1,
		`{"webhooks":[]}`: 0, `{"webhooks":null}`: 0, `{"error":null,"webhooks":[]}`: 0,
		`{}`: -1, `{"webhooks":{}}`: -1, `{"webhooks":7}`: -1, `[]`: -1, `{"webhooks":[`: -1, ``: -1, `<html>`: -1,
	} {
		hooks, err := serve(t, answer(200, body), nil).Webhooks(t.Context(), "f")
		if (err == nil) != (n >= 0) || err == nil && len(hooks) != n || n == 1 && hooks[0] != want {
			t.Errorf("%s: %+v, %v", body, hooks, err)
		}
	}
	asked := extract.Webhook{Event: "result_completed", URL: hook, Keyed: true}
	for _, c := range []struct {
		status int
		body   string
		made   extract.Webhook
	}{
		{200, `{"webhook":` + one + `}`, want},
		{201, one, want},
		{200, `{}`, asked},
		{200, `{"webhook":null}`, asked},
		{204, ``, asked},
	} {
		client := serve(t, answer(c.status, c.body), nil)
		made, err := client.SetWebhook(t.Context(), "f", hook, transport.NewSecret(shake))
		if err != nil || made != c.made {
			t.Errorf("%d %s: %+v, %v", c.status, c.body, made, err)
		}
		if err := client.RemoveWebhook(t.Context(), "f", hook); err != nil {
			t.Errorf("%d %s: %v", c.status, c.body, err)
		}
	}
}

// TestWebhookRequest: the fields go into a form-urlencoded body, or into the query.
func TestWebhookRequest(t *testing.T) {
	var got, body string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		got, body = r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Content-Type"), string(data)
		fmt.Fprint(w, `{}`)
	}, nil)
	escaped := transport.Escape(hook)
	for method, want := range map[string][2]string{
		http.MethodPost:   {"POST /api/v2/acme/forms/f/webhooks application/x-www-form-urlencoded", "event=result_completed&url=" + escaped + "&handshake_key=sh4ke%2Bk3y%20%26"},
		http.MethodDelete: {"DELETE /api/v2/acme/forms/f/webhooks?url=" + escaped + " ", ""},
	} {
		if err := changes(c, t)[method](); err != nil || got != want[0] || body != want[1] {
			t.Errorf("%s: %s, %s: %v", method, got, body, err)
		}
	}
}

// TestChangesAreNotSentTwice, unless the service refused them unheard (HTTP status 429). If
// they may have been carried out, the error says so.
func TestChangesAreNotSentTwice(t *testing.T) {
	for faults, want := range map[string]struct{ sent, unclear int }{
		"busy=1":                 {3, 0}, // 429
		"busy=1,busy-status=200": {3, 0}, // 429 in the answer
		"busy=1,busy-status=503": {1, 1},
		"html=1":                 {1, 1}, // 502
		"html=1,html-status=200": {1, 1},
		"cut=1":                  {1, 1},
		"truncate=1":             {1, 1},
		"empty=1":                {1, 1},
		"reset=1":                {1, 1},
		"redirect=1":             {1, 0},
	} {
		for method := range changes(nil, t) {
			c, service := withService(t, nil)
			if _, err := c.Webhooks(t.Context(), "f"); err != nil { // a connection is kept
				t.Fatal(err)
			}
			service.Reset()
			f, err := formservice.ParseFaults(faults)
			if err != nil {
				t.Fatal(err)
			}
			service.SetFaults(f)
			err = changes(c, t)[method]()
			_, unclear := errors.AsType[*extract.UnclearError](err)
			if err == nil || len(service.Log()) != want.sent || unclear != (want.unclear > 0) {
				t.Errorf("%s with %s: sent %d times, unclear %v, %v", method, faults, len(service.Log()), unclear, err)
			}
			if unclear && (transport.Temporary(err) || !strings.Contains(err.Error(), "is not known: see `formetl webhooks list` before")) {
				t.Errorf("%s with %s: %v", method, faults, err)
			}
		}
	}
}

// TestRefusedChangeSucceedsLater: a refusal has had no effect, so the change is sent again.
func TestRefusedChangeSucceedsLater(t *testing.T) {
	c, service := withService(t, nil)
	service.SetFaults(formservice.Faults{BusyFirst: 1})
	if err := changes(c, t)[http.MethodPost](); err != nil || len(service.Log()) != 2 || len(service.Webhooks("f")) != 1 {
		t.Errorf("%v after %d", err, len(service.Log()))
	}
}

// TestChangesOnBadStatus: whatever a 5xx says, the change may have been made.
func TestChangesOnBadStatus(t *testing.T) {
	for status, unclear := range map[int]bool{500: true, 503: true, 400: false, 401: false, 403: false, 404: false, 405: false, 422: false} {
		asked := 0
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked++
			answer(status, fmt.Sprintf(`{"error":{"message":"m","status":%d}}`, status))(w, r)
		}, nil)
		for method, change := range changes(c, t) {
			asked = 0
			err := change()
			if _, ok := errors.AsType[*extract.UnclearError](err); err == nil || ok != unclear || asked != 1 {
				t.Errorf("%s, %d: %d requests, %v", method, status, asked, err)
			}
		}
	}
}

// TestWebhookSecrets: whatever the server answers, no error and no log holds the token, the
// handshake key or what is secret in the URL.
func TestWebhookSecrets(t *testing.T) {
	var log strings.Builder
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for _, secret := range []string{canary, shake, hook, "form=f&token=qu3ry", "user:p4ss"} {
		for _, said := range []string{secret, transport.Escape(secret)} {
			for _, h := range []http.HandlerFunc{
				answer(422, `{"error":{"message":`+strconv.Quote(said)+`,"status":422}}`),
				answer(429, `{"error":{"message":`+strconv.Quote(said)+`,"status":429}}`),
				answer(500, `{"error":{"message":`+strconv.Quote(said)+`,"status":500}}`),
				answer(200, `{"error":`+strconv.Quote(said)+`}`),
				answer(200, `{"webhooks":`+strconv.Quote(said)+`}`),
				answer(200, said), answer(502, "<html>"+said),
				answer(302, "", "Location: "+other.URL+"/"+transport.Escape(said)+"?"+transport.Escape(said)),
				func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			} {
				c := serve(t, h, func(cfg *v2.Config) {
					cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				})
				for method, change := range changes(c, t) {
					if method == http.MethodDelete && secret == shake {
						continue // it is not sent
					}
					err := change()
					fmt.Fprintf(&log, "%v %+v %#v\n", err, err, err)
				}
			}
		}
	}
	for _, secret := range []string{"c4n4ry", "sh4ke", "qu3ry", "p4ss"} {
		if i := strings.Index(log.String(), secret); i >= 0 {
			t.Errorf("%s is told: %s", secret, log.String()[max(0, i-300):i+50])
		}
	}
	if !strings.Contains(log.String(), "url=[redacted]") {
		t.Error("no request was logged")
	}
}
