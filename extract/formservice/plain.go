package formservice

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// MadeFiles is where the files of results lie, generated or given; see Server.Files.
const MadeFiles = "https://files.example.com/files/"

// plain returns a result whose files lie on the service's own host and, with Server.Plain, as
// public clients of the service have seen it: items by position, one for each id, in v1 only
// text and list as the types of items, and in v2 no metas of forms with a login, payments or
// scores.
func (c *call) plain(f *Form, r Result) Result {
	if !c.server.Plain && !c.server.Files {
		return r
	}
	scheme := "https"
	if c.server.Files && c.http.TLS == nil {
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
	if !c.server.Plain {
		return r
	}
	r.Items = r.once()
	for i := range r.Items {
		a := &r.Items[i]
		it, _ := f.item(a.ID)
		a.Type, a.Index = cmp.Or(a.Type, it.Type), cmp.Or(a.Index, it.Index)
		switch {
		case c.api == V2:
		case several(a.Type):
			a.Type = "list"
		default:
			a.Type = "text"
		}
	}
	slices.SortStableFunc(r.Items, func(a, b Answer) int { return cmp.Compare(a.Index, b.Index) })
	if c.api == V2 {
		r.Metas = slices.DeleteFunc(slices.Clone(r.Metas), func(m Meta) bool {
			return strings.HasPrefix(m.ID, "login_") || strings.HasPrefix(m.ID, "payment_") || m.ID == "score"
		})
	}
	return r
}
