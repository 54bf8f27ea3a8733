package transform

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// TestEmptyRules is the row "Empty" of contract.md, for both rules.
func TestEmptyRules(t *testing.T) {
	lines := []string{"s item:1 string", "n item:2 int64", "l item:3 list<string>", "d item:4 list<int64>", "m meta:m string", "t meta:t timestamp"}
	all := func(suffix string) (out []string) {
		for _, id := range []string{"1", "2", "3", "4"} {
			out = append(out, "item:"+id+suffix)
		}
		return out
	}
	p := new(answer).
		result(1).                                                     // missing
		result(2, all("")...).                                         // no value
		result(3, append(all("="), "meta:m", "meta:t")...).            // <value/>
		result(4, "item:3=|", "item:4=|").                             // two empty values
		result(5, "item:3=a||b", "item:4=1||2").                       // an empty one among others
		result(6, "item:3=", "item:3=", "item:4=7", "item:4").         // in two elements
		result(7, "item:1", "item:1=", "item:2", "item:2=", "item:3"). // one value in two elements
		page(t)
	t.Run("keep", func(t *testing.T) {
		start(t, schema(t, lines...)).feed(t, p).wantRows(t,
			`∅ · ∅ · ∅ · ∅ · ∅ · ∅`,
			`∅ · ∅ · [] · [] · ∅ · ∅`,
			`"" · ∅ · [] · [] · "" · ∅`,
			`∅ · ∅ · ["" ""] · [∅ ∅] · ∅ · ∅`,
			`∅ · ∅ · ["a" "" "b"] · [1 ∅ 2] · ∅ · ∅`,
			`∅ · ∅ · ["" ""] · [7] · ∅ · ∅`,
			`"" · ∅ · [] · ∅ · ∅ · ∅`)
	})
	t.Run("as_null", func(t *testing.T) {
		s := schema(t, lines...)
		s.Empty = schemas.EmptyAsNull
		start(t, s).feed(t, p).wantRows(t,
			`∅ · ∅ · ∅ · ∅ · ∅ · ∅`,
			`∅ · ∅ · ∅ · ∅ · ∅ · ∅`,
			`∅ · ∅ · ∅ · ∅ · ∅ · ∅`,
			`∅ · ∅ · [∅ ∅] · [∅ ∅] · ∅ · ∅`,
			`∅ · ∅ · ["a" ∅ "b"] · [1 ∅ 2] · ∅ · ∅`,
			`∅ · ∅ · [∅ ∅] · [7] · ∅ · ∅`,
			`∅ · ∅ · ∅ · ∅ · ∅ · ∅`)
	})
}

// TestInferredSeveralValues: drift is joined as in CSV and counted, by column.
func TestInferredSeveralValues(t *testing.T) {
	s := schema(t, "id result_id int64", "a item:1 string", "when meta:date_x timestamp")
	for i := range s.Columns {
		s.Columns[i].Inferred = true
	}
	p := new(answer).
		result(1, `item:1=a\b|c`).
		result(2, "item:1=x", "item:1=y|", "meta:date_x=never").
		result(3, "item:1=one", "meta:date_x=2026-01-01 00:00:00", "meta:date_x=2026-01-02 00:00:00").page(t)
	r := start(t, s).feed(t, p)
	r.wantRows(t, `1 · "a\\\\b|c" · ∅`, `2 · "x|y|" · ∅`, `3 · "one" · ∅`)
	got := r.Stats()
	if !reflect.DeepEqual(got.Joined, map[string]int64{"a": 2}) || got.Rejected != 0 ||
		!reflect.DeepEqual(got.Nulled, map[Fault]int64{{"when", reasonTimestamp}: 1, {"when", reasonSeveral}: 1}) {
		t.Errorf("stats %+v", got)
	}
}

func TestOnErrorFail(t *testing.T) {
	s := schema(t, "id result_id int64", "n item:1 int64", "price item:2 decimal(5,2) fail")
	p := new(answer).result(1, "item:1=1").result(8, "item:1=x", "item:2=secret").result(9, "item:1=2").page(t)
	r := start(t, s)
	err := r.Append(p)
	var fault *ValueError
	if !errors.As(err, &fault) || fault.ResultID != 8 || fault.Column != "price" || fault.Raw != "secret" || fault.Reason != reasonDecimal {
		t.Fatalf("%#v", err)
	}
	want := "result 8: column price (from item:2): a value does not fit the type decimal(5,2): not a decimal number; correct the result at the service, or the column's type in the schema (with on_error: reject such results are left out, with on_error: set_null such values)"
	if err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if again, flush := r.Append(p), r.Flush(); !errors.Is(again, err) || !errors.Is(flush, err) {
		t.Errorf("after an error: %v, %v", again, flush)
	}
	if len(r.rejects) != 0 || len(r.rows) != 0 {
		t.Errorf("a failed run gave %v and %v", r.rejects, r.rows)
	}
}

func TestUnknownAdd(t *testing.T) {
	s := schema(t, "id result_id int64", "name item:1 string")
	first := new(answer).result(1, "item:1@1=a").page(t)
	second := new(answer).
		result(2, "item:1@1=b", "item:30@9=late", "item:20@4=x|y", "meta:score=7", "meta:date_update=2026-01-01 00:00:00").
		result(3, "item:5-0@2=m").page(t)
	r := start(t, s).feed(t, first, second, first)
	base := []string{"id", "name"}
	wide := append(slices.Clip(base), "date_update", "score", "item_5_0", "item_20", "item_30")
	if !reflect.DeepEqual(r.batches, [][]string{base, wide}) || !slices.Equal(r.sizes, []int64{1, 3}) {
		t.Errorf("batches %v of %v rows", r.batches, r.sizes)
	}
	r.wantRows(t, `1 · "a"`,
		`2 · "b" · 2026-01-01T00:00:00Z · "7" · ∅ · "x|y" · "late"`,
		`3 · ∅ · ∅ · ∅ · "m" · ∅ · ∅`,
		`1 · "a" · ∅ · ∅ · ∅ · ∅ · ∅`)
	got := r.Stats()
	if !reflect.DeepEqual(got.Joined, map[string]int64{"item_20": 1}) || len(got.Added) != 5 || got.Added[0].Name != "date_update" {
		t.Errorf("stats %+v", got)
	}
	if !reflect.DeepEqual(got.Added, r.Columns()[2:]) || len(s.Columns) != 2 {
		t.Errorf("columns %v, schema %v", r.Columns(), s.Columns)
	}
	if f := r.schema.Field(6); f.Name != "item_30" {
		t.Errorf("schema %v", r.schema)
	}
}

func TestUnknownAddNames(t *testing.T) {
	s := schema(t, "id result_id int64", "item_7 item:1 string")
	headings := []page.Heading{{ID: "7", Label: "Known before"}}
	p := new(answer).result(1, "item:7@1=a", "item:8@2=b", "item:9@3=c", "meta:x=1").
		page(t, "7=Seven", "8=Eight, or so\n", "meta:x=Ex")
	r := start(t, s, func(o *Options) { o.Naming = schemas.ByLabel; o.Headings = headings }).feed(t, p)
	if got := r.batches[0]; !slices.Equal(got, []string{"id", "item_7", "x", "known_before_7", "eight_or_so_8", "item_9"}) {
		t.Errorf("columns %q", got)
	}
	if c := r.Columns()[4]; c.Label != "Eight, or so\n" || !c.Inferred {
		t.Errorf("column %+v", c)
	}
	r = start(t, s).feed(t, p)
	if got := r.batches[0]; got[3] == "item_7" || !strings.HasPrefix(got[3], "item_7_h") || got[4] != "item_8" {
		t.Errorf("columns %q", got)
	}
}

func TestUnknownIgnore(t *testing.T) {
	s := schema(t, "id result_id int64", "name item:1 string")
	s.Unknown = schemas.UnknownIgnore
	p := new(answer).result(1, "item:1=a", "item:2=x", "meta:m=1").result(2, "item:2=y", "item:2=z").page(t)
	r := start(t, s).feed(t, p, p)
	r.wantRows(t, `1 · "a"`, `2 · ∅`, `1 · "a"`, `2 · ∅`)
	want := map[schemas.Source]int64{{Kind: schemas.FromItem, ID: "2"}: 6, {Kind: schemas.FromMeta, ID: "m"}: 2}
	if got := r.Stats(); !reflect.DeepEqual(got.Ignored, want) || got.Added != nil {
		t.Errorf("stats %+v", got)
	}
}

func TestUnknownFail(t *testing.T) {
	s := schema(t, "id result_id int64", "name item:1 string")
	s.Unknown = schemas.UnknownFail
	p := new(answer).result(1, "item:1=a").result(4, "item:9@2=x", "item:8@1=y").page(t, "8=Eight")
	err := start(t, s).Append(p)
	var unknown *UnknownFieldError
	if !errors.As(err, &unknown) || unknown.ResultID != 4 {
		t.Fatalf("%#v", err)
	}
	want := `result 4 has the field item:8 ("Eight"), which is not in the schema, and the schema says unknown: fail; add {name: "item_8", from: "item:8", type: string} to its columns, or set unknown: add (such fields become columns) or unknown: ignore (they are left out); the schema also lacks item:9`
	if err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	for n := range 20 {
		unknown.Others = append(unknown.Others, schemas.Source{Kind: schemas.FromMeta, ID: strconv.Itoa(n)})
	}
	if want := "; the schema also lacks item:9, meta:0, meta:1, meta:2, meta:3, meta:4, meta:5, meta:6, meta:7, meta:8 and 11 more"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v\nwant …%s", err, want)
	}
}

// TestFilteredFieldsAreNotUnknown: a field of results that were filtered out
// neither adds a column nor fails, and nothing is told of it.
func TestFilteredFieldsAreNotUnknown(t *testing.T) {
	for _, rule := range []schemas.Unknown{schemas.UnknownAdd, schemas.UnknownIgnore, schemas.UnknownFail} {
		s := schema(t, "id result_id int64", "name item:1 string")
		s.Unknown = rule
		p := new(answer).result(1, "item:1=a").result(2, "item:9@7=x").page(t)
		p.Filter(func(id int64) bool { return id == 1 })
		r := start(t, s).feed(t, p)
		r.wantRows(t, `1 · "a"`)
		for from, seen := range r.Stats().Seen {
			if seen.Index != 0 || seen.ItemType != "" || seen.Filled != 1 {
				t.Errorf("%s: %+v", from, seen)
			}
		}
	}
}

func TestBatchBounds(t *testing.T) {
	a := new(answer)
	for i := range 10 {
		a.result(int64(i+1), "item:1="+strings.Repeat("x", 100))
	}
	p, s := a.page(t), schema(t, "id result_id int64", "name item:1 string")
	for name, tt := range map[string]struct {
		rows, bytes int
		want        []int64
	}{
		"rows":     {4, 0, []int64{4, 4, 4, 4, 4}},
		"one":      {1, 0, slices.Repeat([]int64{1}, 20)},
		"bytes":    {0, 1000, []int64{8, 8, 4}},
		"defaults": {0, 0, []int64{20}},
	} {
		r := start(t, s, func(o *Options) { o.BatchRows, o.BatchBytes = tt.rows, tt.bytes }).feed(t, p, p)
		if !slices.Equal(r.sizes, tt.want) {
			t.Errorf("%s: batches of %v rows, want %v", name, r.sizes, tt.want)
		}
	}
}

func TestErrorsOfCallbacks(t *testing.T) {
	full, dead := errors.New("disk full"), errors.New("dead letters full")
	p := new(answer).result(1, "item:1=x").page(t)
	r := start(t, schema(t, "n item:1 string"), func(o *Options) { o.Emit = func(arrow.RecordBatch) error { return full } })
	if err := r.Append(p); err != nil {
		t.Fatal(err)
	}
	if err := r.Flush(); !errors.Is(err, full) {
		t.Errorf("Emit's error: %v", err)
	}
	r = start(t, schema(t, "n item:1 int64"), func(o *Options) { o.Reject = func(Reject) error { return dead } })
	if err := r.Append(p); !errors.Is(err, dead) || !strings.Contains(err.Error(), "result 1") {
		t.Errorf("Reject's error: %v", err)
	}
	r = start(t, schema(t, "n item:1 int64"), func(o *Options) { o.Reject = nil }).feed(t, p)
	if r.Stats().Rejected != 1 {
		t.Error("a reject without a callback was not counted")
	}
}

func TestNewFlattenerRefuses(t *testing.T) {
	good := schema(t, "id result_id int64")
	bad := schema(t, "a item:1 string", "a item:2 string")
	emit := func(arrow.RecordBatch) error { return nil }
	for name, make := range map[string]func() (*Flattener, error){
		"schema": func() (*Flattener, error) { return NewFlattener(bad, Options{Zone: zone(t, "UTC"), Emit: emit}) },
		"zone":   func() (*Flattener, error) { return NewFlattener(good, Options{Emit: emit}) },
		"emit":   func() (*Flattener, error) { return NewFlattener(good, Options{Zone: zone(t, "UTC")}) },
	} {
		if f, err := make(); err == nil || f != nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestReleaseTwice(t *testing.T) {
	r := start(t, schema(t, "n item:1 string"))
	if err := r.Append(new(answer).result(1, "item:1=x").page(t)); err != nil {
		t.Fatal(err)
	}
	r.Release()
	r.Release()
	if err := r.Flush(); err == nil {
		t.Error("a released Flattener flushes")
	}
}

func TestStatsAdd(t *testing.T) {
	a := Stats{Rows: 1, Rejected: 2, Joined: map[string]int64{"x": 1}, Added: []schemas.Column{col(t, "a item:1 string")}}
	b := Stats{
		Rows: 10, Joined: map[string]int64{"x": 2, "y": 3}, Nulled: map[Fault]int64{{"z", "r"}: 4},
		Added: []schemas.Column{col(t, "b item:2 string"), col(t, "a item:1 string")},
	}
	var sum Stats
	sum.Add(a)
	sum.Add(b)
	want := Stats{
		Rows: 11, Rejected: 2, Joined: map[string]int64{"x": 3, "y": 3}, Nulled: map[Fault]int64{{"z", "r"}: 4},
		Added: []schemas.Column{col(t, "a item:1 string"), col(t, "b item:2 string")},
	}
	if !reflect.DeepEqual(sum, want) || a.Joined["x"] != 1 {
		t.Errorf("%+v, and a %+v", sum, a)
	}
}

// TestPooledMemory: batches in memory that held others before are the same, to the byte.
func TestPooledMemory(t *testing.T) {
	p, _ := benchPage(t)
	written := func(mem memory.Allocator) (all []byte) {
		t.Helper()
		var out bytes.Buffer
		f, err := NewFlattener(schema(t, append(benchSchema(t, true), "none item:none string", "nothing item:nothing list<string>")...), Options{
			Zone: zone(t, "UTC"), Mem: mem, BatchRows: 77,
			Emit: func(b arrow.RecordBatch) error {
				w := ipc.NewWriter(&out, ipc.WithSchema(b.Schema()))
				return errors.Join(w.Write(b), w.Close())
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Release()
		if err := errors.Join(f.Append(p), f.Flush()); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	pool := new(Pool)
	for size := 1 << 10; size <= 64<<10; size += size / 4 {
		used := make([][]byte, 0, 8)
		for range 8 {
			b := pool.Allocate(size)
			for i := range b {
				b[i] = 0xaa
			}
			used = append(used, b)
		}
		for _, b := range used {
			pool.Free(b)
		}
	}
	if !bytes.Equal(written(pool), written(memory.NewGoAllocator())) {
		t.Error("the batches differ")
	}
}
