package formservice

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// v2 sends a request with the token; what comes before "?" is the path below
// the account.
func (s service) v2(t *testing.T, method, target string, headers ...string) reply {
	t.Helper()
	r, err := s.try(t, method, "/api/v2/"+s.account()+target, append([]string{"Authorization: bearer " + s.key()}, headers...)...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func decode[V any](t *testing.T, r reply) V {
	t.Helper()
	var v V
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("HTTP %d: %v\n%s", r.status, err, r.body)
	}
	return v
}

// v2IDs asks for results of form1, and returns their ids.
func (s service) v2IDs(t *testing.T, query string) []int64 {
	t.Helper()
	r := s.v2(t, "GET", "/forms/form1/results?"+query)
	if r.status != http.StatusOK {
		t.Fatalf("%s: HTTP %d\n%s", query, r.status, r.body)
	}
	results := decode[struct {
		Results []struct {
			ID int64 `json:",string"`
		}
	}](t, r).Results
	ids := make([]int64, 0, len(results))
	for _, result := range results {
		ids = append(ids, result.ID)
	}
	return ids
}

// v2Error reads an error's body and checks that it tells its status.
func v2Error(t *testing.T, r reply) {
	t.Helper()
	e := decode[struct {
		Error struct {
			Message string
			Status  int
		}
	}](t, r).Error
	if e.Status != r.status || e.Message == "" {
		t.Errorf("HTTP %d with %+v", r.status, e)
	}
}

// startV2 serves the small form, with choices and a zone, in both generations.
func startV2(t *testing.T) service {
	t.Helper()
	f := smallForm()
	f.Items[0].Choices = []string{"red", "green", "blue"}
	f.Items[2].Choices = []string{"poor", "good"}
	f.Groups = map[string]string{"353": "How was it?", "353-0": "The food"}
	f.Labels["3"] = map[string]string{"353": "Wie war es?", "353-0-0": "Suppe"}
	return startService(t, &Server{Forms: []*Form{f}, Accounts: []string{"other"}, API: Both, Key: "k/é ü", Zone: chicago(t)})
}

func chicago(t testing.TB) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("America/Chicago")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}
