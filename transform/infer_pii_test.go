package transform

import (
	"testing"
	"time"

	"github.com/formetl/formetl/extract/page"
)

func schemaOf(pages ...*page.Page) []string { return spell(Infer("x", pages, true).Columns) }

func TestPersonal(t *testing.T) {
	for name, tt := range map[string]struct {
		label, itemType string
		values          []string
		want            string
	}{
		"mail by both":        {"E-Mail", "", []string{"a@b.example", "c.d+e@f.example"}, "an e-mail address, by its label and its values"},
		"mail by values":      {"Contact", "", []string{"a@b.example", "c@d.example", "e@f.example", "g@h.example", "none"}, "an e-mail address, by its values"},
		"too few":             {"Contact", "", []string{"a@b.example", "c@d.example", "e@f.example", "no", "none"}, ""},
		"mail by type":        {"Contact", "email", []string{"x"}, "an e-mail address, by its item type"},
		"korean mail":         {"이메일", "", nil, "an e-mail address, by its label"},
		"russian mail":        {"Электронная почта", "", nil, "an e-mail address, by its label"},
		"phone":               {"Contact", "", []string{"+41 44 123 45 67", "0441234567", "(044) 123-4567", "044/123 45 67"}, "a phone number, by its values"},
		"phone by label":      {"Telefonnummer (privat)", "", []string{"x"}, "a phone number, by its label"},
		"chinese phone":       {"手机", "", nil, "a phone number, by its label"},
		"arabic name":         {"اسم", "", nil, ""},
		"dates are no phones": {"When", "", []string{"2025-12-31", "2025-12-31 10:00:00", "31.12.2025", "12/31/2025 10:00"}, ""},
		"prices neither":      {"Price", "", []string{"1234567.50", "7654321.25", "12345678"}, ""},
		"ip":                  {"From", "", []string{"198.51.100.7", "2001:db8::1"}, "an IP address, by its values"},
		"name":                {"Full name", "", []string{"x"}, "a person's name, by its label"},
		"german name":         {"Vor- und Nachname", "", nil, "a person's name, by its label"},
		"russian name":        {"Фамилия", "", nil, "a person's name, by its label"},
		"company":             {"Company name", "", nil, ""},
		"file":                {"File name", "", nil, ""},
		"address":             {"Street address", "", nil, "an address, by its label"},
		"post code":           {"PLZ", "", nil, "an address, by its label"},
		"birth":               {"Geburtsdatum", "", nil, "a date of birth, by its label"},
		"born":                {"Born on", "date", nil, "a date of birth, by its label"},
		"passport":            {"Passport number", "", nil, "a number that identifies a person, by its label"},
		"comment":             {"Comment", "textarea", []string{"write to a@b.example"}, ""},
		"no word":             {"Renamed", "", nil, ""},
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
	s, guesses := l.Schema("x", false)
	want := map[string]string{
		"user_ip": "an IP address, by its id and its values", "login_email": "an e-mail address, by its id", "login_username": "a person's name, by its id",
	}
	for i, c := range s.Columns {
		if guesses[i].Personal != want[c.Name] {
			t.Errorf("%s: %q", c.Name, guesses[i].Personal)
		}
	}
}
