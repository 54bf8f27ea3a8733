package formservice

import (
	"net/url"
	"strings"
)

// MadeFiles is where the files of results lie, generated or given; see Server.Files.
const MadeFiles = "https://files.example.com/files/"

// linked returns a result whose files lie on the service's own host, if the server has files.
func (c *call) linked(r Result) Result {
	if !c.server.Files {
		return r
	}
	scheme := "https"
	if c.http.TLS == nil {
		scheme = "http"
	}
	r = r.Clone()
	for _, a := range r.Items {
		for i, v := range a.Values {
			if name, ok := strings.CutPrefix(v, MadeFiles); ok {
				a.Values[i] = scheme + "://" + c.http.Host + "/" + url.PathEscape(c.server.account()) + "/files/" + name
			}
		}
	}
	return r
}
