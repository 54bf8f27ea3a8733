package transform

import (
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/schemas"
)

// TestFilteredResultsTellNothing: a field that only they have is nobody's.
func TestFilteredResultsTellNothing(t *testing.T) {
	s := &schemas.Schema{Name: "s", Unknown: schemas.UnknownIgnore, Columns: []schemas.Column{
		{Name: "status", From: schemas.Source{Kind: schemas.FromMeta, ID: "result_status"}, Type: schemas.Type{Kind: schemas.String}},
	}}
	f, err := NewFlattener(s, Options{Zone: time.UTC, Emit: func(arrow.RecordBatch) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	var a answer
	a.result(1, "meta:result_status=ok").result(2, "meta:result_status=ok", "item:9@7=x")
	p := a.page(t)
	p.Filter(func(id int64) bool { return id != 2 })
	if err := f.Append(p); err != nil {
		t.Fatal(err)
	}
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	for from, seen := range f.Stats().Seen {
		if seen.Index != 0 || seen.ItemType != "" || seen.Filled != 1 {
			t.Errorf("%s: %+v", from, seen)
		}
	}
}
