package schemas

import (
	"strings"
	"testing"
)

// TestAddTyped: the column of typed texts stands behind its item's, under a name of its own, and is
// as personal.
func TestAddTyped(t *testing.T) {
	long := strings.Repeat("x", 60)
	for _, tt := range []struct {
		naming   Naming
		inferred bool
		given    string
		want     string
	}{
		{ByID, false, "c item:1 list<string> Colours; d item:2 string", "c=item:1 c_other=other:1 d=item:2 d_other=other:2"},
		{ByID, false, "c item:1 string; C_other item:2 string; m meta:m string; t other:2 string", "c=item:1 c_other_2=other:1 C_other=item:2 m=meta:m t=other:2"},
		{ByHeading, false, "c item:1 string", "c=item:1 c_other=other:1"},
		{ByHeading, true, long + " item:1 string", long + "=item:1 " + long + " (other)=other:1"},
		{ByLabel, true, long + " item:1 string", long + "=item:1 " + hashed(long, Source{FromOther, "1"}) + "=other:1"},
	} {
		s := &Schema{Columns: columnsOf(t, tt.given)}
		for i := range s.Columns {
			s.Columns[i].Inferred, s.Columns[i].PII = tt.inferred, PII{Kind: PIIRedact}
		}
		s.AddTyped(tt.naming, func(Column) bool { return true })
		var got []string
		for _, c := range s.Columns {
			got = append(got, c.Name+"="+c.From.String())
			if c.PII.Kind != PIIRedact || c.Inferred != tt.inferred {
				t.Errorf("%s: %+v", tt.given, c)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.given, got, tt.want)
		}
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// TestLateTyped: a late column of typed texts has a name that its arguments give, and the pii rule
// of the item's column in the base.
func TestLateTyped(t *testing.T) {
	for naming, want := range map[Naming]string{ByID: "item_7_other", ByLabel: "colours_7_other", ByHeading: "Colours (7) (other)"} {
		late := lateText(Source{FromOther, "7"}, "Colours", naming)
		if late.Name != want || late.Label != "Colours (other)" || !late.Inferred {
			t.Errorf("%s: %+v", naming, late)
		}
		base := columns(t, "c item:7 list<string>")
		base[0].PII = PII{Kind: PIIHMAC}
		if got := Merge(base, []Column{late}); got[1].Name != want || got[1].PII != base[0].PII {
			t.Errorf("merged: %+v", got)
		}
	}
	for from, want := range map[Source]string{{FromItem, "7"}: "Colours", {FromOther, "7"}: "Colours (other)", {FromOther, "8"}: ""} {
		if got, _ := from.Label(map[string]string{"7": "Colours", "8": ""}); got != want {
			t.Errorf("%s has the label %q", from, got)
		}
	}
}

// TestValidateOther: what is refused of the key other, and of columns from other:ID.
func TestValidateOther(t *testing.T) {
	for _, tt := range []struct {
		given  string
		change func(columns []Column)
		want   string
	}{
		{"c item:1 list<string>; t other:1 string", func(c []Column) { c[0].Choices = []string{"red"} }, ""},
		{"c item:1 string", func(c []Column) { c[0].Other, c[0].Choices = OtherColumn, []string{"red"} }, ""},
		{"t other:1 string", func([]Column) {}, ""},
		{"c item:1 string", func(c []Column) { c[0].Other = "colum" }, `columns[0].other: unknown value "colum"; use one of column, inline`},
		{"c item:1 string", func(c []Column) { c[0].Choices = []string{"red"} }, ""},
		{"m meta:m string", func(c []Column) { c[0].Other = OtherInline }, "columns[0].other: other is for columns from item:ID, but this one is from meta:m; remove other"},
		{"t other:1 list<string>", func([]Column) {}, "columns[0].type: what people typed is text; use the type string, not list<string>"},
		{"c item:1 list<string>", func(c []Column) { c[0].Other, c[0].ListAs = OtherInline, ListColumns }, "columns[0].other: with list_as: columns, inline would make a column of each text that people type; use column, or list_as: joined or json"},
		{"c item:1 string; t other:1 string", func(c []Column) { c[0].Other = OtherInline }, "columns[0].other: other: inline puts the typed texts into this column, so the column from other:1 would be empty; write other: column here, or remove the column from other:1"},
	} {
		s := &Schema{Columns: columnsOf(t, tt.given)}
		tt.change(s.Columns)
		got := ""
		if err := s.Validate(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.given, got, tt.want)
		}
	}
}
