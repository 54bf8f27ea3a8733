package formservice

import (
	"net/url"
	"testing"
)

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{
		"/api/users/acme/forms", "/api/users/acme/forms/form1/results/count", "/api/users/a%2Fb/forms/%20/copy", "/", "//",
		"/api/users/acme/forms/form1/", "/api/users/%/forms", "/api/users/acme/forms/copy/copy", "/api/users/forms/forms/forms/publish",
		"/api/users/acme/forms/..%2F..%2Fetc/results", "/api/users/acme/forms/a%3Fb%23c/results", "/api/users/acme/forms/f/results%2Fcount",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		s := new(Server)
		rt, ok := s.parsePath(path)
		if !ok {
			return
		}
		again := "/api/users/" + url.PathEscape(rt.account) + "/forms"
		if rt.transaction != TransactionForms {
			again += "/" + url.PathEscape(rt.form) + "/" + rt.transaction
		}
		if back, ok := s.parsePath(again); !ok || back != rt {
			t.Fatalf("%q gives %+v, written again %q gives %+v (%t)", path, rt, again, back, ok)
		}
	})
}
