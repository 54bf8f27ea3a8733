package transform

import (
	"bytes"
	"net/netip"
	"strings"

	"github.com/formetl/formetl/schemas"
)

// personal counts values with the shape of personal data.
func (s *shapes) personal(v []byte) {
	switch {
	case likeEmail(v):
		s.emails++
	case likeIP(v):
		s.ips++
	case likePhone(v):
		s.phones++
	}
}

// likeEmail tells whether v has one @ with text before it and a domain with a
// point after it.
func likeEmail(v []byte) bool {
	at := bytes.IndexByte(v, '@')
	if at < 1 || bytes.ContainsAny(v, " \t\r\n,;<>()") || bytes.IndexByte(v[at+1:], '@') >= 0 {
		return false
	}
	domain := v[at+1:]
	point := bytes.LastIndexByte(domain, '.')
	return point > 0 && point < len(domain)-1
}

func likeIP(v []byte) bool {
	if len(v) > len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255") || bytes.IndexByte(v, '.') < 0 && bytes.IndexByte(v, ':') < 0 {
		return false
	}
	_, err := netip.ParseAddr(string(v))
	return err == nil
}

// likePhone tells whether v has seven to fifteen digits and is written like a
// phone number. Plain digits need a + or a 0 in front.
func likePhone(v []byte) bool {
	digits, signs := 0, 0
	for i, c := range v {
		switch {
		case digit(c):
			digits++
		case c == '+' && i == 0:
		case strings.IndexByte(" ()-/.", c) >= 0:
			signs++
		default:
			return false
		}
	}
	if digits < 7 || digits > 15 {
		return false
	}
	if v[0] == '+' || v[0] == '(' || v[0] == '0' && signs == 0 {
		return true
	}
	// A date has fewer than nine digits, or is excluded here. A number with one
	// point is no phone number.
	return signs > 1 && digits >= 9 && !likeDate(v)
}

// likeDate tells whether v begins with a date.
func likeDate(v []byte) bool {
	day := v[:min(len(v), len("2006-01-02"))]
	_, reason := parseDate(day)
	return reason == "" || yearFirst(day) || new(foreign).day(v)
}

// personalKind is a kind of personal data and how it is recognised.
type personalKind struct {
	what  string
	metas string // ids of metas
	words string // of labels
	types string // of items
	seen  int    // values with its shape
}

func personalKinds(s *shapes) []personalKind {
	return []personalKind{
		{"an e-mail address", "login_email", emailWords, "email e_mail", s.emails},
		{"an IP address", "user_ip", ipWords, "ip", s.ips},
		{"a phone number", "", phoneWords, "phone tel telephone mobile fax", s.phones},
		{"a date of birth", "", birthWords, "birthday birthdate", 0},
		{"a number that identifies a person", "", identityWords, "ssn iban", 0},
		{"an address", "", addressWords + " " + postalWords, "address location zip postal", 0},
		{"a person's name", "login_username", nameWords, "name signature", 0},
	}
}

// personalData says what personal data a field most likely holds and how that was
// recognised, "" for none. The text never holds a value.
func personalData(from schemas.Source, text, itemType label, s *shapes) string {
	best, most := "", 0
	for _, kind := range personalKinds(s) {
		var by []string
		if from.Kind == schemas.FromMeta && kind.metas == from.ID {
			by = append(by, "its id")
		}
		if from.Kind != schemas.FromMeta && text.has(kind.words) != "" && !notPersonal(kind, text) {
			by = append(by, "its label")
		}
		if itemType.has(kind.types) != "" {
			by = append(by, "its item type")
		}
		if kind.seen > 0 && kind.seen*5 >= s.values*4 {
			by = append(by, "its values")
		}
		if len(by) > most {
			best, most = kind.what+", by "+and(by), len(by)
		}
	}
	return best
}

// notPersonal tells whether a label that has a word of the kind also has words
// that rule out a person, as "company name" does.
func notPersonal(kind personalKind, text label) bool {
	switch kind.words {
	case nameWords:
		return text.has(notPeople) != "" && text.has("first last full vor nach") == ""
	case identityWords: // too general by themselves
		return text.has("bank id tax account konto compte card insurance") != "" &&
			text.has("passport iban ssn social_security tax_id bank_account credit_card kreditkarte kontonummer account_number insurance_number") == ""
	}
	return false
}

// and joins words: "a", "a and b", "a, b and c".
func and(words []string) string {
	n := len(words)
	if n < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
}
