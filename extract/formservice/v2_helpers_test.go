package formservice

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// v2Result is a result as encoding/json reads it: an opinion that is not the
// service's own.
type v2Result struct {
	metas map[string]string
	items []v2Item
}

type v2Item struct {
	ID       string
	Position int
	Value    *string
	Values   *[]v2Value
}

type v2Value struct {
	Position int
	Value    string
	Other    *string
}

// UnmarshalJSON takes every member but items as a meta.
func (r *v2Result) UnmarshalJSON(data []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	r.metas = map[string]string{}
	for name, raw := range members {
		if name == "items" {
			if err := json.Unmarshal(raw, &r.items); err != nil {
				return err
			}
			continue
		}
		text := string(raw) // a number
		if raw[0] == '"' {
			if err := json.Unmarshal(raw, &text); err != nil {
				return err
			}
		}
		r.metas[name] = text
	}
	return nil
}

func (r v2Result) id(t *testing.T) int64 {
	t.Helper()
	id, err := strconv.ParseInt(r.metas["id"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// v2 sends a request with the token; what comes before "?" is the path below
// the account.
func (s service) v2(t *testing.T, method, target string, headers ...string) reply {
	t.Helper()
	r, err := s.tryV2(t, method, target, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s service) tryV2(t *testing.T, method, target string, headers ...string) (reply, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+"/api/v2/"+s.account()+target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "bearer "+s.key())
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
		if value == "" {
			req.Header.Del(name)
		}
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	read, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(read)}, err
}

func decode[V any](t *testing.T, r reply) V {
	t.Helper()
	var v V
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("HTTP %d: %v\n%s", r.status, err, r.body)
	}
	return v
}

// v2Results asks for results of form1.
func (s service) v2Results(t *testing.T, query string) []v2Result {
	t.Helper()
	r := s.v2(t, "GET", "/forms/form1/results?"+query)
	if r.status != http.StatusOK {
		t.Fatalf("%s: HTTP %d\n%s", query, r.status, r.body)
	}
	return decode[struct{ Results []v2Result }](t, r).Results
}

func (s service) v2IDs(t *testing.T, query string) []int64 {
	t.Helper()
	results := s.v2Results(t, query)
	ids := make([]int64, 0, len(results))
	for _, r := range results {
		ids = append(ids, r.id(t))
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
