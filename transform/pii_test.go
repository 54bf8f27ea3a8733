package transform

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/schemas"
)

// cloaked is a schema whose columns "name from type [on_error]; rule" have
// rules, with a key where one is needed.
func cloaked(t testing.TB, lines ...string) *schemas.Schema {
	t.Helper()
	s := &schemas.Schema{Name: "test"}
	for _, line := range lines {
		column, rule, _ := strings.Cut(line, ";")
		c := col(t, column)
		if rule != "" {
			var err error
			if c.PII, err = schemas.ParsePII(strings.TrimSpace(rule)); err != nil {
				t.Fatal(err)
			}
		}
		s.Columns = append(s.Columns, c)
	}
	if s.Needs(schemas.PIIHMAC) {
		s.HMACKey = hmacKey(t, bytes.Repeat([]byte{0x0b}, 20))
	}
	return s
}

func hmacKey(t testing.TB, secret []byte) schemas.HMACKey {
	t.Helper()
	k, err := schemas.NewHMACKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Hashes with the key of test case 1 of RFC 4231 (twenty times 0x0b), by
// openssl: "Hi There" is the RFC's own.
const (
	hashHiThere = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
	hashPadded  = "59f9b6d741d1efe0f90e29a0d2100965fc903ecaf18bb01931ec3b2bc69f2d47" // " Hi There "
	hashA       = "344e31cd8a23bcaaba8d627e73cf8f2887fd057ab8b26a6f97e88986f03eaeea" // "a"
)

// TestPIIRules is every rule in every type that has it: of values, of several,
// of empty ones and of none.
func TestPIIRules(t *testing.T) {
	p := new(answer).
		result(1, "item:1=Hi There", "item:2=Hi There|a").
		result(2, "item:1=", "item:2=").
		result(3).
		result(4, "item:1", "item:2=Hi There||Hi There").
		result(5, "item:1= Hi There ", "item:2=a", "item:2=Hi There").
		page(t)
	quoted := strings.NewReplacer("HI", `"`+hashHiThere+`"`, "PAD", `"`+hashPadded+`"`, "A", `"`+hashA+`"`)
	for rule, want := range map[string][]string{
		"redact": {
			`"[redacted]" · ["[redacted]" "[redacted]"]`, `"" · []`, `∅ · ∅`,
			`∅ · ["[redacted]" "" "[redacted]"]`, `"[redacted]" · ["[redacted]" "[redacted]"]`,
		},
		"truncate(2)": {`"Hi" · ["Hi" "a"]`, `"" · []`, `∅ · ∅`, `∅ · ["Hi" "" "Hi"]`, `" H" · ["a" "Hi"]`},
		"truncate(0)": {`"" · ["" ""]`, `"" · []`, `∅ · ∅`, `∅ · ["" "" ""]`, `"" · ["" ""]`},
		"hmac":        {`HI · [HI A]`, `"" · []`, `∅ · ∅`, `∅ · [HI "" HI]`, `PAD · [A HI]`},
	} {
		t.Run(rule, func(t *testing.T) {
			for i := range want {
				want[i] = quoted.Replace(want[i])
			}
			r := start(t, cloaked(t, "s item:1 string; "+rule, "l item:2 list<string>; "+rule)).feed(t, p)
			r.wantRows(t, want...)
			for from, seen := range r.Stats().Seen {
				if seen.Choices != nil {
					t.Errorf("%s: choices were kept: %v", from, seen.Choices)
				}
			}
		})
	}
}

// TestPIIEmptyAsNull: what was empty is null, what the rule empties is not: an
// answer was given.
func TestPIIEmptyAsNull(t *testing.T) {
	s := cloaked(t, "s item:1 string; truncate(0)", "l item:2 list<string>; hmac")
	s.Empty = schemas.EmptyAsNull
	p := new(answer).result(1, "item:1=x", "item:2=a|").result(2, "item:1=", "item:2=").page(t)
	start(t, s).feed(t, p).wantRows(t, `"" · ["`+hashA+`" ∅]`, `∅ · ∅`)
}

// TestPIIDrop: the source is known, and is in no batch, is not counted and
// never added or refused, whatever the rule for unknown fields.
func TestPIIDrop(t *testing.T) {
	for _, unknown := range []schemas.Unknown{schemas.UnknownAdd, schemas.UnknownIgnore, schemas.UnknownFail} {
		t.Run(string(unknown), func(t *testing.T) {
			s := cloaked(t, "id result_id int64", "mail item:1 string fail; drop", "n item:2 int64 fail; drop", "x item:3 string")
			s.Unknown = unknown
			r := start(t, s).feed(t, new(answer).
				result(1, "item:1=a", "item:1=b", "item:2=no number", "item:3=x").
				result(2, "item:3=y", "item:2=3").page(t))
			r.wantRows(t, `1 · "x"`, `2 · "y"`)
			if got := columnNames(r.Columns()); got != "id x" || r.schema.NumFields() != 2 {
				t.Errorf("the columns are %q, %v", got, r.schema)
			}
			stats := r.Stats()
			if len(stats.Ignored)+len(stats.Added) > 0 || stats.Rejected > 0 || len(stats.Seen) != 2 { // the id and x
				t.Errorf("stats: %+v", stats)
			}
		})
	}
}

// TestPIIDropLate: a column that is added does not take the name of one that
// is dropped, so that the run's list of columns, which has both, agrees.
func TestPIIDropLate(t *testing.T) {
	s := cloaked(t, "item_2 item:1 string; drop", "x item:3 string")
	r := start(t, s).feed(t, new(answer).result(1, "item:1=a", "item:3=x", "item:2=late").page(t))
	r.wantRows(t, `"x" · "late"`)
	added := r.Stats().Added
	if len(added) != 1 || added[0].Name == "item_2" || columnNames(r.Columns()) != "x "+added[0].Name {
		t.Errorf("added %v, columns %q", added, columnNames(r.Columns()))
	}
	if merged := schemas.Merge(s.Columns, added); merged[2].Name != added[0].Name {
		t.Errorf("the run's columns name it %q", merged[2].Name)
	}
}

func columnNames(columns []schemas.Column) string {
	names := make([]string, 0, len(columns))
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}

// TestPIISeveral: several values that a string column rejects, or fails with,
// are treated one by one before anybody is told of them.
func TestPIISeveral(t *testing.T) {
	for rule, want := range map[string]string{
		"redact": `[redacted]|[redacted]`, "truncate(2)": `Hi|\|\\`, "hmac": hashHiThere + `|` + hashOf(t, `|\x`),
	} {
		page := func() *answer {
			return new(answer).result(7, "item:1=Hi There", `item:1@2=PIPE\x`)
		}
		body := strings.ReplaceAll(page().String(), "PIPE", "|")
		p := (&answer{}).raw(body).page(t)
		r := start(t, cloaked(t, "s item:1 string; "+rule, "id result_id int64")).feed(t, p)
		if len(r.rejects) != 1 || r.rejects[0].Raw != want {
			t.Errorf("%s: the dead letters are %+v, want %s", rule, r.rejects, want)
		}
		failing := start(t, cloaked(t, "s item:1 string fail; "+rule))
		var wrong *ValueError
		if err := failing.Append(p); !errors.As(err, &wrong) || wrong.Raw != want || strings.Contains(err.Error(), "Hi") {
			t.Errorf("%s: failed with %v and raw %q, want %s", rule, err, wrong.Raw, want)
		}
	}
}

// raw makes s the answer's results.
func (a *answer) raw(s string) *answer {
	a.WriteString(s)
	return a
}

// hashOf is the hash of v by a Flattener of its own.
func hashOf(t testing.TB, v string) string {
	t.Helper()
	k, err := newCloak(cloaked(t, "s item:1 string; hmac"))
	if err != nil {
		t.Fatal(err)
	}
	treated, _ := k.value(schemas.PII{Kind: schemas.PIIHMAC}, []byte(v), nil)
	return string(treated)
}

// TestPIIRFC4231 compares with test cases of RFC 4231.
func TestPIIRFC4231(t *testing.T) {
	for _, c := range []struct {
		key         []byte
		value, want string
	}{
		{bytes.Repeat([]byte{0x0b}, 20), "Hi There", hashHiThere},
		{bytes.Repeat([]byte{0xaa}, 20), strings.Repeat("\xdd", 50), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
		{bytes.Repeat([]byte{0xaa}, 131), "Test Using Larger Than Block-Size Key - Hash Key First", "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	} {
		s := cloaked(t, "s item:1 string; hmac")
		s.HMACKey = hmacKey(t, c.key)
		k, err := newCloak(s)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // every value begins anew
			if got, _ := k.value(s.Columns[0].PII, []byte(c.value), nil); string(got) != c.want {
				t.Errorf("the hash of %q is %s, want %s", c.value, got, c.want)
			}
		}
	}
}

// TestPIINeedsKey: without a key nothing begins.
func TestPIINeedsKey(t *testing.T) {
	s := cloaked(t, "s item:1 string; hmac")
	s.HMACKey = schemas.HMACKey{}
	_, err := NewFlattener(s, Options{Zone: zone(t, "UTC"), Emit: func(arrow.RecordBatch) error { return nil }})
	if err == nil || !strings.Contains(err.Error(), `schema "test": pii: hmac needs a key`) {
		t.Errorf("got %v", err)
	}
}

// FuzzTruncate: a beginning of the value of at most n characters, all of them
// where it has no more, and never half of one.
func FuzzTruncate(f *testing.F) {
	for _, v := range []string{"", "abc", "żółw", "😀😀😀", "日本語", "😀e\u0301", "e\u0301a", "\xe2\x82", "a\xffb", "\xff\xfeab"} {
		for _, n := range []int{0, 1, 2, 3, 9} {
			f.Add(v, n)
		}
	}
	f.Fuzz(func(t *testing.T, v string, n int) {
		got := string(truncate([]byte(v), n))
		if !strings.HasPrefix(v, got) {
			t.Fatalf("truncate(%q, %d) = %q is no beginning", v, n, got)
		}
		if want := min(max(n, 0), utf8.RuneCountInString(v)); utf8.RuneCountInString(got) != want {
			t.Fatalf("truncate(%q, %d) = %q has %d characters, want %d", v, n, got, utf8.RuneCountInString(got), want)
		}
		if utf8.ValidString(v) && !utf8.ValidString(got) {
			t.Fatalf("truncate(%q, %d) = %q cuts a character", v, n, got)
		}
	})
}
