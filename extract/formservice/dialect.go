package formservice

import (
	"cmp"
	"net/http"

	"github.com/formetl/formetl/extract/formservice/internal/jsonapi"
	"github.com/formetl/formetl/extract/formservice/internal/query"
)

// dialect is how one generation of the interface answers a request.
type dialect interface {
	answer() outcome
	busy(status int) outcome // 0: the status that is usual
	contentType() string
	buffer() []byte // to be used again
}

// asked is a request with what is known of it.
type asked struct {
	server *Server
	http   *http.Request
	route
	routeErr error
	faults   Faults
}

// secret tells which parameters of a generation are keys or tokens.
func (s *Server) secret(api string) func(query.Pair) bool {
	if api == V2 {
		return (&jsonapi.Service{Token: s.key()}).Secret
	}
	return func(p query.Pair) bool { return p.Name == keyParameter }
}

// xmlDialect is API v1.
type xmlDialect struct {
	asked
	w *writer
}

func (d xmlDialect) answer() outcome {
	return d.server.answer(d.http, d.route, d.routeErr, d.faults, d.w)
}

func (d xmlDialect) busy(status int) outcome {
	no := &refusal{code: codeBusy, message: "the system is too busy; try again"}
	return outcome{body: d.w.refusal(no), status: cmp.Or(status, http.StatusServiceUnavailable), code: codeBusy}
}

func (d xmlDialect) contentType() string { return "text/xml; charset=" + d.w.Charset() }

func (d xmlDialect) buffer() []byte { return d.w.Buf }

// jsonDialect is API v2.
type jsonDialect struct {
	asked
	w *jsonapi.Writer
}

func newJSONDialect(a asked, buffer []byte) jsonDialect {
	return jsonDialect{a, jsonapi.NewWriter(buffer, a.faults.Latin1, a.faults.Control)}
}

func (d jsonDialect) answer() outcome {
	service := d.service()
	var form *jsonapi.Form
	if f := d.server.Form(d.form); f != nil && d.form != "" {
		f.mu.RLock()
		defer f.mu.RUnlock()
		form = f.shown(service, d.faults)
	}
	to := jsonapi.Route{Account: d.account, Form: d.form, Kind: d.transaction}
	return d.outcome(service.Answer(d.http, to, d.routeErr, form, d.w))
}

func (d jsonDialect) busy(status int) outcome {
	status = cmp.Or(status, http.StatusTooManyRequests)
	told := status
	if told < http.StatusBadRequest { // the body tells what the status does not
		told = http.StatusTooManyRequests
	}
	out := d.outcome(jsonapi.Refuse(&jsonapi.Refusal{Status: told, Message: "Too many requests or too busy"}, d.w))
	out.status = status
	return out
}

func (d jsonDialect) outcome(reply jsonapi.Reply) outcome {
	out := outcome{body: d.w.Buf, status: reply.Status, code: -1, results: reply.Results, header: reply.Header}
	if reply.Status >= http.StatusBadRequest {
		out.code = reply.Status
	}
	return out
}

func (d jsonDialect) contentType() string {
	if charset := d.w.Charset(); charset != "" {
		return "application/json; charset=" + charset
	}
	return "application/json"
}

func (d jsonDialect) buffer() []byte { return d.w.Buf }

// service is the account as API v2 shows it under the request's faults.
func (d jsonDialect) service() *jsonapi.Service {
	s := d.server
	shapes := d.faults.V2
	service := &jsonapi.Service{
		Account: s.account(), Others: s.Accounts, Token: s.key(), Loose: s.Loose,
		MaxLimit: jsonapi.MaxLimitOf(d.faults.StrictLimit), Variants: shapes,
		Clock: jsonapi.Clock{Zone: s.Zone, Fractions: shapes.Fractions, Seconds: shapes.Seconds, Coarse: shapes.CoarseBounds},
	}
	service.Forms = func() []*jsonapi.Form {
		s.mu.Lock()
		forms := append([]*Form(nil), s.forms...)
		s.mu.Unlock()
		shown := make([]*jsonapi.Form, len(forms))
		for i, f := range forms {
			f.mu.RLock()
			shown[i] = f.shown(service, d.faults)
			f.mu.RUnlock()
		}
		return shown
	}
	return service
}
