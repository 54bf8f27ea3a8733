package transform

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// spell lists the columns as "name from type".
func spell(columns []schemas.Column) []string {
	out := make([]string, 0, len(columns))
	for _, c := range columns {
		out = append(out, fmt.Sprintf("%s %s %s", c.Name, c.From, c.Type))
	}
	return out
}

func wantColumns(t *testing.T, s *schemas.Schema, want ...string) {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Errorf("invalid: %v", err)
	}
	for _, c := range s.Columns {
		if !c.Inferred {
			t.Errorf("column %s is not marked inferred", c.Name)
		}
	}
	if got := spell(s.Columns); !slices.Equal(got, want) {
		t.Errorf("columns\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestInfer(t *testing.T) {
	first := new(answer).
		result(1, "meta:result_status=Complete", "meta:date_finish=2026-01-01 00:00:00", "item:9@3=x", "item:4@1=a", "item:353-0-0@2=r").
		result(2, "item:206@4=red|green", "item:4@1=b").
		page(t, "result_id=Reference #", "result_status=Status", "date_finish=Finished", "4=Full name", "353-0-0=Row one", "9=Full name", "206=Colours\n")
	second := new(answer).result(7, "meta:user_ip=::1", "item:77@9=p", "item:77@9=q", "item:5@2=late").page(t)
	pages := []*page.Page{first, second}

	byID := Infer("feedback", pages, schemas.ByID)
	wantColumns(t, byID,
		"result_id result_id int64", "result_status meta:result_status string", "date_finish meta:date_finish timestamp", "user_ip meta:user_ip string",
		"item_4 item:4 string", "item_353_0_0 item:353-0-0 string", "item_5 item:5 string", "item_9 item:9 string", "item_206 item:206 list<string>", "item_77 item:77 list<string>")
	if byID.Name != "feedback" || byID.MaxRejects != schemas.DefaultMaxRejects {
		t.Errorf("schema %+v", byID)
	}
	if byID.Columns[0].Label != "Reference #" || byID.Columns[2].Label != "Finished" || byID.Columns[8].Label != "Colours\n" {
		t.Errorf("labels of %+v", byID.Columns)
	}
	wantColumns(t, Infer("feedback", pages, schemas.ByLabel),
		"result_id result_id int64", "result_status meta:result_status string", "date_finish meta:date_finish timestamp", "user_ip meta:user_ip string",
		"full_name item:4 string", "row_one item:353-0-0 string", "item_5 item:5 string", "full_name_2 item:9 string", "colours item:206 list<string>", "item_77 item:77 list<string>")
}

// TestInferWithoutResults: a form without answers has its headings' columns.
func TestInferWithoutResults(t *testing.T) {
	wantColumns(t, Infer("x", nil, schemas.ByLabel), "result_id result_id int64")
	p := new(answer).page(t, "id=No", "result_status=Status", "date_custom=D", "score=Points", "3=C", "1=A", "title=T")
	wantColumns(t, Infer("x", []*page.Page{p}, schemas.ByLabel),
		"result_id result_id int64", "result_status meta:result_status string", "score meta:score string", "date_custom meta:date_custom timestamp",
		"c item:3 string", "a item:1 string", "t item:title string")
}

func TestInferOrder(t *testing.T) {
	for name, tt := range map[string]struct {
		cells, headings []string
		want            string
	}{
		"by index":                      {[]string{"item:a@3=", "item:b@1=", "item:c@2="}, nil, "b c a"},
		"headings do not change it":     {[]string{"item:a@3=", "item:b@1=", "item:c@2="}, []string{"a=", "b=", "c="}, "b c a"},
		"no index, by headings":         {[]string{"item:a=", "item:b=", "item:c="}, []string{"c=", "a=", "b="}, "c a b"},
		"no index, no headings":         {[]string{"item:c=", "item:a=", "item:b="}, nil, "c a b"},
		"no index comes last":           {[]string{"item:z=", "item:a@2=", "item:b@1="}, nil, "b a z"},
		"only in headings":              {[]string{"item:a@1=", "item:b@2="}, []string{"x=", "a=", "y=", "z=", "b=", "w="}, "x a y z b w"},
		"predecessor is the nearest":    {[]string{"item:a@1=", "item:b@2="}, []string{"b=", "a=", "x="}, "a x b"},
		"negative index is none":        {[]string{"item:a@-5=", "item:b@1="}, nil, "b a"},
		"several headings of one field": {[]string{"item:a@1=", "item:b@2="}, []string{"a=", "x=", "b=", "x="}, "a x b"},
	} {
		p := new(answer).result(1, tt.cells...).page(t, tt.headings...)
		var got []string
		for _, c := range Infer("x", []*page.Page{p}, schemas.ByID).Columns[1:] {
			got = append(got, c.From.ID)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, " "), tt.want)
		}
	}
}

// TestInferMoved: the newest index of an item stands, and its first heading.
func TestInferMoved(t *testing.T) {
	old := new(answer).result(1, "item:1@1=a", "item:2@2=b").page(t, "1=First", "2=Second")
	now := new(answer).result(2, "item:1@3=a", "item:2@2=b").page(t, "1=Renamed", "2=Second")
	s := Infer("x", []*page.Page{old, now}, schemas.ByLabel)
	wantColumns(t, s, "result_id result_id int64", "second item:2 string", "first item:1 string")
}

func TestInferKinds(t *testing.T) {
	p := new(answer).
		result(1, "meta:result_id=1", "meta:7=m", "item:7=i", "meta:date_a=x", "item:date_b=y", "item:score=5").
		page(t, "meta:extra=M", "item:user_ip=I", "7=Seven", "score=Score", "result_id=R", "id=Not a field")
	// Headings without a kind: a field that results have decides before known metas.
	s := Infer("x", []*page.Page{p}, schemas.ByLabel)
	wantColumns(t, s,
		"result_id result_id int64", "extra meta:extra string", "result_id_2 meta:result_id string", "7 meta:7 string", "date_a meta:date_a timestamp",
		"i item:user_ip string", "seven item:7 string", "score item:score string", "item_date_b item:date_b string")
	if s.Columns[3].Label != "Seven" || s.Columns[0].Label != "Not a field" || s.Columns[2].Label != "R" {
		t.Errorf("labels of %+v", s.Columns)
	}
}

func TestInferSeveral(t *testing.T) {
	p := new(answer).
		result(1, "item:1=a", "item:1=b", "item:2=a", "item:3", "item:3=x", "item:4=|", "meta:m=1", "meta:m=2").
		result(2, "item:2=b", "item:3=y").page(t)
	wantColumns(t, Infer("x", []*page.Page{p}, schemas.ByID),
		"result_id result_id int64", "m meta:m string",
		"item_1 item:1 list<string>", "item_2 item:2 string", "item_3 item:3 string", "item_4 item:4 list<string>")

	p.Filter(func(id int64) bool { return id == 2 })
	wantColumns(t, Infer("x", []*page.Page{p}, schemas.ByID), "result_id result_id int64", "item_2 item:2 string", "item_3 item:3 string")
}

// TestInferOutlivesPages: the schema holds no view of a released page.
func TestInferOutlivesPages(t *testing.T) {
	body := func(x string) string {
		return fmt.Sprintf(`<fs_response status="success"><headings><heading for="%s">L%s</heading></headings><results><result id="1"><items><item id="%s"><value>v</value></item></items></result></results></fs_response>`, x, x, x)
	}
	p := decode(t, body("aaaa"))
	s := Infer("x", []*page.Page{p}, schemas.ByID)
	p.Release()
	q := decode(t, body("bbbb"))
	defer q.Release()
	if got := s.Columns[1]; got.From.ID != "aaaa" || got.Label != "Laaaa" {
		t.Errorf("column %+v", got)
	}
}

// TestInferThenFlatten: an inferred schema takes its own sample without a
// fault, and everything that comes later without a reject.
func TestInferThenFlatten(t *testing.T) {
	p := new(answer).
		result(1, "meta:date_finish=2026-01-01 00:00:00", "item:1@1=a", "item:2@2=x|y").
		result(2, "meta:date_finish=", "item:2@2=").page(t)
	r := start(t, Infer("x", []*page.Page{p}, schemas.ByID))
	r.feed(t, p)
	r.wantRows(t, `1 · 2026-01-01T00:00:00Z · "a" · ["x" "y"]`, `2 · ∅ · ∅ · []`)
	if s := r.Stats(); s.Nulled != nil || s.Joined != nil || s.Rejected != 0 || s.Added != nil {
		t.Errorf("stats %+v", s)
	}
	r.feed(t, new(answer).result(3, "meta:date_finish=soon", "item:1=p|q").page(t))
	if s := r.Stats(); s.Nulled[Fault{"date_finish", reasonTimestamp}] != 1 || s.Joined["item_1"] != 1 || s.Rejected != 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestUnreadValuesAreShown: of each inferred column the first value that became null, on one
// line and short. Declared columns and personal data show none.
func TestUnreadValuesAreShown(t *testing.T) {
	s := schema(t, "id result_id int64", "a meta:date_a timestamp", "b meta:date_b timestamp", "c meta:date_c timestamp set_null", "d meta:date_d timestamp", "e meta:date_e timestamp")
	for _, i := range []int{1, 2, 4, 5} {
		s.Columns[i].Inferred = true
	}
	s.Columns[4].PII = schemas.PII{Kind: schemas.PIIDrop}
	long := "2026\u202e-01\n-05" + strings.Repeat("x", 500)
	cells := func(v string) []string {
		return []string{"meta:date_a=" + v, "meta:date_b=2026-01-05 10:00:00", "meta:date_c=" + v, "meta:date_d=" + v, "meta:date_e=" + long}
	}
	r := start(t, s).feed(t, new(answer).result(1, cells("01/05/2026 10:00:00")...).result(2, cells("24:00:00")...).page(t))
	var sum Stats
	sum.Add(r.Stats())
	sum.Add(Stats{FirstNulled: map[string]string{"a": "later", "z": "new"}})
	want := map[string]string{"a": "01/05/2026 10:00:00", "e": "2026 -01 -05" + strings.Repeat("x", 17) + "…", "z": "new"}
	if !reflect.DeepEqual(sum.FirstNulled, want) || sum.Nulled[Fault{"a", reasonTimestamp}] != 2 {
		t.Errorf("%q, nulled %v", sum.FirstNulled, sum.Nulled)
	}
}

// FuzzInfer holds that whatever ids and labels an answer has, the inferred
// schema is valid and flattens the answer without loss.
func FuzzInfer(f *testing.F) {
	f.Add("1", "Name", "2", "Name", 1)
	f.Add("353-0-0", "", "353_0_0", "\n", 0)
	f.Add("result_id", "id", "id", "result id", 1)
	f.Add("date_x", "A", "DATE_X", "a", 1)
	f.Add("Ä", "ä", "ä", "Ä", 0)
	f.Add("1", "Name\n of it", "2", "NAME of it", 2)
	f.Fuzz(func(t *testing.T, id1, label1, id2, label2 string, naming int) {
		if naming < 0 || naming > 2 {
			return
		}
		for _, s := range []string{id1, label1, id2, label2} {
			if strings.ContainsAny(s, "=@:") || len(s) > 200 {
				return
			}
		}
		if id1 == "" || id2 == "" {
			return
		}
		p := new(answer).result(1, "meta:"+id1+"=m", "item:"+id2+"=v").result(2, "item:"+id1+"=a|b", "meta:"+id2+"=n").
			page(t, id1+"="+label1, id2+"="+label2)
		s := Infer("x", []*page.Page{p}, []schemas.Naming{schemas.ByID, schemas.ByLabel, schemas.ByHeading}[naming])
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, c := range s.Columns {
			if len(c.Name) > schemas.MaxHeading {
				t.Errorf("the name %q is too long", c.Name)
			}
		}
		r := start(t, s).feed(t, p)
		if len(r.rows) != 2 || len(r.Stats().Added) != 0 {
			t.Errorf("rows %q, stats %+v", r.rows, r.Stats())
		}
	})
}
