package tables

import (
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
)

// testDialect is a dialect without bounds.
func testDialect() *Dialect {
	return &Dialect{Name: "test", Product: "Test", Types: Types{
		Integer: "bigint", Float: "double", Boolean: "boolean", Date: "date", Timestamp: "timestamptz", Text: "text", Decimal: "decimal(%d,%d)",
	}}
}

// identified adds a column with the result's id in front.
func identified(schema *arrow.Schema) *arrow.Schema {
	id := arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: arrow.NewMetadata([]string{MetaFrom}, []string{FromResultID})}
	return arrow.NewSchema(append([]arrow.Field{id}, schema.Fields()...), nil)
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte(HeaderMark + `{"columns":[{"name":"id","type":"bigint"}],"id":"id"}` + "\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		h, err := DecodeHeader(line)
		if err != nil {
			return
		}
		if again, err := DecodeHeader(h.Encode()); err != nil || again.ID != h.ID || len(again.Columns) != len(h.Columns) {
			t.Errorf("%+v becomes %+v, %v", h, again, err)
		}
	})
}

// Names of any kind are quoted so that they name one thing.
func FuzzQuote(f *testing.F) {
	for _, name := range loadtest.HostileNames() {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		quoted := Quote(name)
		inner := quoted[1 : len(quoted)-1]
		for i := 0; i < len(inner); i++ {
			if inner[i] != '"' {
				continue
			}
			if i+1 == len(inner) || inner[i+1] != '"' {
				t.Fatalf("%q ends within %s", name, quoted)
			}
			i++
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	loadtest.Bench(b, identifiedFormat(), load.EncodeOptions{})
}

// identifiedFormat is the format for batches whose first column is the id and does not say so.
func identifiedFormat() load.Format {
	d := testDialect()
	f := d.Format()
	f.New = func(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (load.Encoder, error) {
		h, err := d.HeaderOf(identified(schema))
		if err != nil {
			return nil, err
		}
		return &encoder{w: w, head: h.Encode()}, nil
	}
	return f
}
