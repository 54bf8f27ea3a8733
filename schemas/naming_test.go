package schemas

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSnake(t *testing.T) {
	for _, tt := range [][2]string{
		{"Full name", "full_name"},
		{"  What's your name?\r\n", "whats_your_name"},
		{"Line one\nline two ", "line_one_line_two"},
		{"Größe", "grosse"},
		{"Straße", "strasse"},
		{"Имя и фамилия", "imia_i_familiia"},
		{"область", "oblast"},
		{"姓名", "xing_ming"},
		{"한국어", "hangugeo"},
		{"Ελληνικά", "ellenika"},
		{"שם", "shm"},
		{"Ｆｕｌｌ　ｗｉｄｔｈ", "full_width"},
		{"\u00e9t\u00e9", "ete"},
		{"e\u0301te\u0301", "ete"}, // decomposed: the same name
		{"2nd choice", "_2nd_choice"},
		{"0 or 10", "_0_or_10"},
		{"Q12b", "q12b"},
		{"iPhone", "iphone"},
		{"__a--b__", "a_b"},
		{"=1+1", "_1_1"},
		{"", "column"},
		{"!!!", "column"},
		{"\u200f\ufeff", "column"},
		{strings.Repeat("a", 100), strings.Repeat("a", 63)},
		{strings.Repeat("a", 62) + " b", strings.Repeat("a", 62)},
		{"1" + strings.Repeat("a", 100), "_1" + strings.Repeat("a", 61)},
		{strings.Repeat("界", 50), "jie_jie_jie_jie_jie_jie_jie_jie_jie_jie_jie_jie_jie_jie_jie_jie"},
	} {
		if got := Snake(tt[0]); got != tt[1] {
			t.Errorf("Snake(%q) = %q, want %q", tt[0], got, tt[1])
		}
	}
}

func TestItemName(t *testing.T) {
	for _, tt := range [][2]string{
		{"1", "item_1"},
		{"353-0-0", "item_353_0_0"},
		{"a_B", "item_a_B"},
		{"é", "item__"},
		{"a b.c/d", "item_a_b_c_d"},
		{"", "item_"},
	} {
		if got := ItemName(tt[0]); got != tt[1] {
			t.Errorf("ItemName(%q) = %q, want %q", tt[0], got, tt[1])
		}
	}
	long := strings.Repeat("7", 80)
	a, b := ItemName(long+"1"), ItemName(long+"2")
	if len(a) != MaxName || len(b) != MaxName || a == b || a != ItemName(long+"1") {
		t.Errorf("long ids give %q and %q", a, b)
	}
}

func TestMetaName(t *testing.T) {
	if got := MetaName("date_finish"); got != "date_finish" {
		t.Errorf("MetaName(date_finish) = %q", got)
	}
	got := MetaName(strings.Repeat("é", 60))
	if len(got) > MaxName || !utf8.ValidString(got) {
		t.Errorf("a long meta id gives %q (%d bytes)", got, len(got))
	}
}

func TestDefaultName(t *testing.T) {
	item, meta := Source{FromItem, "353-0-0"}, Source{FromMeta, "result_status"}
	for _, tt := range []struct {
		from   Source
		label  string
		naming Naming
		want   string
	}{
		{Source{Kind: FromResultID}, "Reference", ByLabel, "result_id"},
		{meta, "Status", ByLabel, "result_status"},
		{meta, "Status", ByID, "result_status"},
		{item, "How was it?", ByLabel, "how_was_it"},
		{item, "How was it?", ByID, "item_353_0_0"},
		{item, "", ByLabel, "item_353_0_0"},
		{item, "???", ByLabel, "item_353_0_0"},
		{item, "D.T.", ByLabel, "d_t"},
		{item, " How was\n it? ", ByHeading, "How was it?"},
		{item, "Dt", ByHeading, "item_353_0_0"},
		{meta, "Status", ByHeading, "result_status"},
		{item, "DT", ByLabel, "item_353_0_0"}, // as the folders of a dataset
	} {
		if got := DefaultName(tt.from, tt.label, tt.naming); got != tt.want {
			t.Errorf("DefaultName(%v, %q, %v) = %q, want %q", tt.from, tt.label, tt.naming, got, tt.want)
		}
	}
}

func TestUniquer(t *testing.T) {
	var u Uniquer
	got := []string{"a", "a", "A", "a_2", "b", "a"}
	for i, want := range got {
		got[i] = u.Name(want)
	}
	if want := []string{"a", "a_2", "A_3", "a_2_2", "b", "a_4"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

var identifier = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// FuzzSnake holds the promises of Snake for any two labels, and that Uniquer
// keeps names apart and short.
func FuzzSnake(f *testing.F) {
	for _, s := range []string{"", "Name", "Größe", "名前", "\x7f", "\xff", "____", "9", "a\u0301", "🎉", strings.Repeat("Щ", 40)} {
		f.Add(s, "Name")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		var u Uniquer
		seen := map[string]bool{}
		for _, label := range []string{a, b, a, b, a + b, a} {
			name := Snake(label)
			if !identifier.MatchString(name) || len(name) > MaxName || strings.HasSuffix(name, "_") {
				t.Errorf("Snake(%q) = %q", label, name)
			}
			if again := Snake(label); again != name {
				t.Errorf("Snake(%q) gives %q and %q", label, name, again)
			}
			made := u.Name(name)
			if seen[strings.ToLower(made)] || len(made) > MaxName {
				t.Errorf("Uniquer made %q of %q again, or too long", made, name)
			}
			seen[strings.ToLower(made)] = true
		}
	})
}
