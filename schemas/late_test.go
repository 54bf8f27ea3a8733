package schemas

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLate(t *testing.T) {
	for _, tt := range []struct {
		from, label string
		naming      Naming
		name        string
	}{
		{"item:7", "Full name", ByID, "item_7"},
		{"item:7", "Full name", ByLabel, "full_name_7"},
		{"item:7", "", ByLabel, "item_7"},
		{"item:7", "?!", ByLabel, "item_7"},
		{"item:353-0-0", "Row", ByID, "item_353_0_0"},
		{"item:353-0-0", "Row", ByLabel, "row_353_0_0"},
		{"item:7", strings.Repeat("long label ", 10), ByLabel, strings.TrimRight(strings.Repeat("long_label_", 6)[:61], "_") + "_7"},
		{"item:7", "Full name?", ByHeading, "Full name? (7)"},
		{"item:7", " ", ByHeading, "item_7"},
		{"item:7", strings.Repeat("é", 200), ByHeading, strings.Repeat("é", 96) + " (7)"},
		{"meta:score", "Score", ByLabel, "score"},
		{"meta:date_finish", "", ByID, "date_finish"},
		{"meta:date_finish", "Finished", ByLabel, "date_finish"},
		{"item:date_x", "", ByID, "item_date_x_h"}, // "_" in an item id: hashed
		{"item:a b", "", ByID, "item_a_b_h"},
		{"item:A", "", ByID, "item_A_h"},
		{"meta:item_7", "", ByID, "item_7_h"},
		{"meta:Score", "", ByID, "Score_h"},
		{"meta:foo-bar", "", ByLabel, "foo-bar_h"},
		{"result_id", "", ByLabel, "result_id"},
	} {
		got := lateText(mustSource(t, tt.from), tt.label, tt.naming)
		name := got.Name
		if strings.HasSuffix(tt.name, "_h") { // and eight digits of a hash
			name = name[:max(0, len(name)-8)]
		}
		if name != tt.name || !got.Inferred || got.Label != tt.label || got.From.String() != tt.from {
			t.Errorf("Late(%s, %q, %v) = %+v, want name %q", tt.from, tt.label, tt.naming, got, tt.name)
		}
	}
}

// lateText is a column of texts for a field that appears late.
func lateText(from Source, label string, naming Naming) Column {
	return Late(from, Type{Kind: String}, label, naming)
}

// TestLateKeepsIDsApart: ids that look alike once they are names have
// different names, whichever turns up first.
func TestLateKeepsIDsApart(t *testing.T) {
	names := map[string]string{}
	for _, from := range []string{
		"item:1-2", "item:1_2", "item:1 2", "item:1.2", "item:1-2-", "item:a", "item:A", "item:Ä", "item:ö",
		"meta:item_1_2", "meta:a", "meta:A", "meta:Ä",
		"item:" + strings.Repeat("9", 90) + "1", "item:" + strings.Repeat("9", 90) + "2",
	} {
		name := strings.ToLower(lateText(mustSource(t, from), "", ByID).Name)
		if names[name] != "" {
			t.Errorf("%s and %s are both called %s", names[name], from, name)
		}
		names[name] = from
	}
}

func TestMerge(t *testing.T) {
	base := columns(t, "id result_id int64", "ITEM_7 item:1 string", "when meta:date_finish timestamp")
	seven, eight, nine := lateText(Source{FromItem, "7"}, "", ByID), lateText(Source{FromItem, "8"}, "", ByID), lateText(Source{FromItem, "9"}, "", ByID)
	shadow := lateText(Source{FromMeta, "date_finish"}, "", ByID)

	got := Merge(base, []Column{eight, shadow}, nil, []Column{seven, eight, nine})
	names := make([]string, 0, len(got))
	for _, c := range got {
		names = append(names, c.Name+"="+c.From.String())
	}
	want := []string{"id=result_id", "ITEM_7=item:1", "when=meta:date_finish", "item_8=item:8", hashed("item_7", seven.From) + "=item:7", "item_9=item:9"}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("got  %q\nwant %q", names, want)
	}
	if len(base) != 3 || base[1].Name != "ITEM_7" {
		t.Error("Merge changed its argument")
	}
	if err := (&Schema{Columns: got}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestMergeNamesDoNotDependOnOrder: parts that met the same fields in another
// order call them the same.
func TestMergeNamesDoNotDependOnOrder(t *testing.T) {
	base := columns(t, "id result_id int64", "item_3 item:900 string", "score item:901 string")
	sources := []string{"item:1", "item:2", "item:3", "item:3-1", "meta:score", "meta:date_update", "item:3_1", "meta:item_1"}
	late := make([]Column, len(sources))
	for i, from := range sources {
		late[i] = lateText(mustSource(t, from), "", ByID)
	}
	nameOf := map[Source]string{}
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		r.Shuffle(len(late), func(i, j int) { late[i], late[j] = late[j], late[i] })
		n := 1 + r.IntN(len(late))
		for _, c := range Merge(base, late[:n/2], late[n/2:n])[len(base):] {
			if was, ok := nameOf[c.From]; ok && was != c.Name {
				t.Fatalf("%s is called %s and %s", c.From, was, c.Name)
			}
			nameOf[c.From] = c.Name
		}
	}
}

func TestMergeFullLengthCollisions(t *testing.T) {
	// A base that holds even the hashed spelling leaves the numbered one.
	from := Source{FromItem, strings.Repeat("9", 90)}
	late := lateText(from, "", ByID)
	base := []Column{{Name: late.Name, From: Source{FromItem, "1"}, Type: Type{Kind: String}}}
	got := Merge(base, []Column{late})
	if err := (&Schema{Columns: got}).Validate(); err != nil || len(got[1].Name) > MaxName {
		t.Errorf("%q: %v", got[1].Name, err)
	}
}

// FuzzLate holds that a late column's name is valid and short, and that a
// merge with any base is valid.
func FuzzLate(f *testing.F) {
	f.Add("1", "Name", "item_1", 1)
	f.Add("353-0-0", "", "item_353_0_0", 0)
	f.Add("\x00", "\xff", "x", 1)
	f.Add(strings.Repeat("é", 50), strings.Repeat("long ", 30), "LONG", 1)
	f.Add("a b", strings.Repeat("é\n", 250), "É", 2)
	f.Fuzz(func(t *testing.T, id, label, taken string, number int) {
		if number < 0 || number > 2 || id == "" || taken == "" || !utf8.ValidString(id) {
			return
		}
		naming := []Naming{ByID, ByLabel, ByHeading}[number]
		base := []Column{{Name: taken, From: Source{FromItem, id + "?"}, Type: Type{Kind: String}}}
		item, meta := lateText(Source{FromItem, id}, label, naming), lateText(Source{FromMeta, id}, label, naming)
		typed := lateText(Source{FromOther, id}, label, naming)
		for _, c := range []Column{item, meta, typed} {
			if c.Name == "" || len(c.Name) > MaxHeading || !utf8.ValidString(c.Name) {
				t.Errorf("Late(%v, %q, %v) is called %q", c.From, label, naming, c.Name)
			}
		}
		merged := Merge(base, []Column{item}, []Column{meta, typed, item})
		if err := (&Schema{Columns: merged}).Validate(); err != nil || len(merged) != 4 {
			t.Errorf("%d columns: %v", len(merged), err)
		}
	})
}
