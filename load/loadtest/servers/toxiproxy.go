package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Proxy is a toxiproxy process, which disturbs connections. It forwards to any number of
// upstreams, each under a name.
type Proxy struct{ *Server }

// Toxiproxy is toxiproxy's program.
func Toxiproxy() Program {
	return Program{Name: "toxiproxy", Module: "github.com/Shopify/toxiproxy/v2/cmd/server", Version: "v2.12.0"}
}

// StartProxy installs toxiproxy if needed and starts it. Stop ends it, and with it
// every connection through it.
func StartProxy(ctx context.Context) (*Proxy, error) {
	server, err := Toxiproxy().Start(ctx, []string{"LOG_LEVEL=error"}, func(host, port string) []string {
		return []string{"-host", host, "-port", port}
	})
	return &Proxy{server}, err
}

// Forward listens at a new loopback address, which it returns, and forwards to
// upstream, host:port.
func (p *Proxy) Forward(ctx context.Context, name, upstream string) (address string, err error) {
	var made struct {
		Listen string `json:"listen"`
	}
	err = p.ask(ctx, http.MethodPost, "/proxies", map[string]any{
		"name": name, "listen": "127.0.0.1:0", "upstream": upstream, "enabled": true,
	}, &made)
	return made.Listen, err
}

// Enable cuts every connection and refuses new ones if enabled is false. With
// true it accepts them again at the same address.
func (p *Proxy) Enable(ctx context.Context, name string, enabled bool) error {
	return p.ask(ctx, http.MethodPost, proxyPath(name), map[string]any{"enabled": enabled}, nil)
}

// Toxic is a disturbance of connections.
type Toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`       // such as latency, timeout, reset_peer, limit_data, bandwidth
	Stream     Stream         `json:"stream"`     // "" is Downstream
	Toxicity   float64        `json:"toxicity"`   // share of the connections it applies to, 0 to 1
	Attributes map[string]int `json:"attributes"` // of the type
}

// Stream is a direction.
type Stream string

// The directions: what the client sends, and what the server answers.
const (
	Upstream   Stream = "upstream"
	Downstream Stream = "downstream"
)

// Latency delays everything by so many milliseconds.
func Latency(name string, s Stream, milliseconds, jitter int) Toxic {
	return Toxic{Name: name, Type: "latency", Stream: s, Toxicity: 1, Attributes: map[string]int{"latency": milliseconds, "jitter": jitter}}
}

// BlackHole drops all data and closes no connection.
func BlackHole(name string, s Stream) Toxic {
	return Toxic{Name: name, Type: "timeout", Stream: s, Toxicity: 1, Attributes: map[string]int{"timeout": 0}}
}

// ResetPeer resets connections after so many milliseconds.
func ResetPeer(name string, s Stream, milliseconds int) Toxic {
	return Toxic{Name: name, Type: "reset_peer", Stream: s, Toxicity: 1, Attributes: map[string]int{"timeout": milliseconds}}
}

// CutAfter closes a connection after so many bytes.
func CutAfter(name string, s Stream, bytes int) Toxic {
	return Toxic{Name: name, Type: "limit_data", Stream: s, Toxicity: 1, Attributes: map[string]int{"bytes": bytes}}
}

// Bandwidth lets so many kilobytes a second through.
func Bandwidth(name string, s Stream, kilobytes int) Toxic {
	return Toxic{Name: name, Type: "bandwidth", Stream: s, Toxicity: 1, Attributes: map[string]int{"rate": kilobytes}}
}

// AddToxic adds a toxic to a forward. It applies to open connections too.
func (p *Proxy) AddToxic(ctx context.Context, forward string, t Toxic) error {
	return p.ask(ctx, http.MethodPost, proxyPath(forward)+"/toxics", t, nil)
}

// RemoveToxic removes a toxic.
func (p *Proxy) RemoveToxic(ctx context.Context, forward, toxic string) error {
	return p.ask(ctx, http.MethodDelete, proxyPath(forward)+"/toxics/"+url.PathEscape(toxic), nil, nil)
}

func proxyPath(name string) string { return "/proxies/" + url.PathEscape(name) }

// ask sends a request and reads its answer into out, which may be nil.
func (p *Proxy) ask(ctx context.Context, method, path string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+p.Address+path, &body)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("toxiproxy does not answer: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // read only
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("toxiproxy does not answer: %w", err)
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("toxiproxy refuses %s %s: %s: %s", method, path, answer.Status, bytes.TrimSpace(data))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}
