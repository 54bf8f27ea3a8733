package transport

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// proxyVariable returns the environment variable that names the proxy for addresses of this scheme.
func proxyVariable(scheme string) string { return strings.ToUpper(scheme) + "_PROXY" }

// unreadable takes the place of a proxy's address that cannot be read. Without it, package
// httpproxy would send requests without a proxy.
const unreadable = "unreadable.invalid"

// proxyFromEnvironment returns what finds the proxy of a request. It reads the environment once.
func proxyFromEnvironment() func(*http.Request) (*url.URL, error) {
	env := httpproxy.FromEnvironment()
	for _, address := range []*string{&env.HTTPProxy, &env.HTTPSProxy} {
		text := *address
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		if u, err := url.Parse(text); err != nil || u.Host == "" && *address != "" {
			*address = "http://" + unreadable
		}
	}
	find := env.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) {
		proxy, err := find(r.URL)
		if err != nil || proxy != nil && proxy.Host == unreadable { // the address may hold a password
			return nil, &Error{Code: 78, Problem: fmt.Sprintf("the address of the proxy in %s cannot be read; write it as http://host:port or http://user:password@host:port, with special characters of the password percent-encoded (# as %%23)", proxyVariable(r.URL.Scheme))}
		}
		return proxy, nil
	}
}

// proxyRefusal returns the error for a proxy that answers in place of the service. scheme is that
// of the service's address, http or https.
func proxyRefusal(scheme string, status int) *NetworkError {
	variable := proxyVariable(scheme)
	e := &NetworkError{
		Problem: fmt.Sprintf("the proxy in %s refuses: %d %s", variable, status, http.StatusText(status)),
		Final:   status < http.StatusInternalServerError && status != http.StatusTooManyRequests,
	}
	e.unsent = !e.Final
	switch {
	case status == http.StatusProxyAuthRequired:
		e.Problem += fmt.Sprintf("; put its user and password into %s, as http://user:password@host:port", variable)
	case e.Final:
		e.Problem += "; ask those who run the proxy to let formetl reach the service, or list the service's host in NO_PROXY"
	}
	return e
}

// onConnect returns the error for a proxy that refuses to connect to the service.
func onConnect(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}
	return proxyRefusal("https", res.StatusCode) // only https needs a connection through a proxy
}
