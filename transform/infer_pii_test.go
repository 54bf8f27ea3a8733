package transform

import (
	"testing"
	"time"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

func schemaOf(pages ...*page.Page) []string { return spell(Infer("x", pages, schemas.ByLabel).Columns) }

func TestPersonal(t *testing.T) {
	for name, tt := range map[string]struct {
		label, itemType string
		values          []string
		want            string
	}{
		"mail":              {"E-Mail", "", nil, "an e-mail address, because of its label"},
		"mail by type":      {"Contact", "email", []string{"x"}, "an e-mail address, because of its item type"},
		"phone":             {"Telefonnummer (privat)", "", []string{"x"}, "a phone number, because of its label"},
		"chinese phone":     {"手机", "", nil, "a phone number, because of its label"},
		"address of a host": {"IP address", "", nil, "an IP address, because of its label"},
		"name":              {"Full name", "", []string{"x"}, "a person's name, because of its label"},
		"german name":       {"Vor- und Nachname", "", nil, "a person's name, because of its label"},
		"decomposed mobile": {"Mo\u0301vil", "", nil, "a phone number, because of its label"},
		"hindi phone":       {"ध्वनि", "", nil, "a phone number, because of its label"},
		"company":           {"Company name", "", nil, ""},
		"comment":           {"Comment", "textarea", []string{"write to a@b.example"}, ""},
		"no word":           {"Renamed", "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			values := tt.values
			if values == nil {
				values = []string{""}
			}
			if got := guessOf(t, tt.label, tt.itemType, time.UTC, values...); got.Personal != tt.want {
				t.Errorf("%q, want %q", got.Personal, tt.want)
			}
		})
	}
}

func TestPersonalMetas(t *testing.T) {
	l := NewLearner(time.UTC)
	l.Add(new(answer).result(1, "meta:user_ip=198.51.100.7", "meta:login_email=", "meta:login_username=x", "meta:score=1").page(t, "user_ip=Name"))
	s, guesses := l.Schema("x", schemas.ByID)
	want := map[string]string{
		"user_ip": "an IP address, because of its id", "login_email": "an e-mail address, because of its id", "login_username": "a person's name, because of its id",
	}
	for i, c := range s.Columns {
		if guesses[i].Personal != want[c.Name] {
			t.Errorf("%s: %q", c.Name, guesses[i].Personal)
		}
	}
}
