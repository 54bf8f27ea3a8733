package formservice

import (
	"net/url"
	"testing"
)

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{
		"/api/users/acme/forms", "/api/users/acme/forms/form1/results/count", "/api/users/a%2Fb/forms/%20/copy", "/", "//",
		"/api/users/acme/forms/form1/", "/api/users/%/forms",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		rt, err := parsePath(path)
		if err != nil {
			return
		}
		again := "/api/users/" + url.PathEscape(rt.account) + "/forms"
		if rt.transaction != TransactionForms {
			again += "/" + url.PathEscape(rt.form) + "/" + rt.transaction
		}
		if back, err := parsePath(again); err != nil || back != rt {
			t.Fatalf("%q gives %+v, written again %q gives %+v (%v)", path, rt, again, back, err)
		}
	})
}
