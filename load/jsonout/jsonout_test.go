package jsonout_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/jsonout"
	"github.com/formetl/formetl/load/loadtest"
)

func TestConformance(t *testing.T) {
	t.Run("ndjson", func(t *testing.T) { loadtest.Encoder(t, jsonout.NDJSON(), readLines, loadtest.Limits{}) })
	t.Run("json", func(t *testing.T) { loadtest.Encoder(t, jsonout.JSON(), readArray, loadtest.Limits{}) })
}

// readLines is the suite's reader of NDJSON: every line is a document.
func readLines(file []byte, schema *arrow.Schema) ([][]string, error) {
	var out [][]string
	for line := range bytes.Lines(file) {
		if !bytes.HasSuffix(line, []byte("}\n")) {
			return nil, fmt.Errorf("a line ends with %.20q", line[max(0, len(line)-20):])
		}
		row, err := readObject(json.NewDecoder(bytes.NewReader(line)), schema)
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, nil
}

// readArray is the suite's reader of JSON.
func readArray(file []byte, schema *arrow.Schema) ([][]string, error) {
	if !json.Valid(file) {
		return nil, errors.New("the file is not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(file))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var out [][]string
	for d.More() {
		row, err := readObject(d, schema)
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	_, err := d.Token()
	return out, err
}

// readObject reads one object token by token, so that the order of its keys
// is seen.
func readObject(d *json.Decoder, schema *arrow.Schema) ([]string, error) {
	d.UseNumber()
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var row []string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		field := schema.Field(len(row))
		if key != field.Name {
			return nil, fmt.Errorf("key %q stands where %q belongs", key, field.Name)
		}
		var v any
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		text, err := value(field.Type, v)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", key, err)
		}
		row = append(row, text)
	}
	_, err := d.Token()
	return row, err
}

func value(t arrow.DataType, v any) (string, error) {
	if v == nil {
		return loadtest.Null, nil
	}
	switch t.ID() {
	case arrow.LIST:
		elements := make([]string, len(v.([]any)))
		for i, e := range v.([]any) {
			text, err := value(t.(*arrow.ListType).Elem(), e)
			if err != nil {
				return "", err
			}
			elements[i] = text
		}
		return loadtest.ListText(elements), nil
	case arrow.INT64, arrow.FLOAT64:
		return loadtest.ParseText(t, v.(json.Number).String())
	case arrow.BOOL:
		return fmt.Sprint(v.(bool)), nil
	default:
		return loadtest.ParseText(t, v.(string))
	}
}

func encode(t testing.TB, format load.Format, batch arrow.RecordBatch) string {
	t.Helper()
	var out bytes.Buffer
	e, err := format.New(&out, batch.Schema(), load.EncodeOptions{Zone: loadtest.Chicago()})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Write(batch), e.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func one(mem memory.Allocator, name, text string, f float64) arrow.RecordBatch {
	schema := loadtest.Columns(name, arrow.BinaryTypes.String, "f", arrow.PrimitiveTypes.Float64)
	return loadtest.Build(mem, schema, 1, func(b array.Builder, _, _ int) {
		switch b := b.(type) {
		case *array.StringBuilder:
			b.Append(text)
		case *array.Float64Builder:
			b.Append(f)
		}
	})
}

func TestBytes(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	for _, c := range []struct {
		name, text string
		f          float64
		want       string
	}{
		{"a", "x", 1, `{"a":"x","f":1}`},
		{`q"`, `"\/`, 0.1, `{"q\"":"\"\\/","f":0.1}`},
		{"a", "\n\r\t\b\f\x00\x1f\x7f", -2.5, `{"a":"\n\r\t\u0008\u000c\u0000\u001f` + "\x7f" + `","f":-2.5}`},
		{"\u2028", "a\u2028b\u2029", 1e21, `{"\u2028":"a\u2028b\u2029","f":1e+21}`},
		{"a", "<b>&amp;", 1e-7, `{"a":"<b>&amp;","f":1e-7}`},
		{"a", "ü😀\uFFFD", math.NaN(), `{"a":"ü😀` + "\uFFFD" + `","f":null}`},
		{"a", "bad \xff\xfe, cut \xe2\x80", math.Inf(1), `{"a":"bad ` + "\uFFFD\uFFFD, cut \uFFFD\uFFFD" + `","f":null}`},
		{"a", "\xed\xa0\x80", math.Inf(-1), `{"a":"` + "\uFFFD\uFFFD\uFFFD" + `","f":null}`},
	} {
		batch := one(mem, c.name, c.text, c.f)
		if got := encode(t, jsonout.NDJSON(), batch); got != c.want+"\n" {
			t.Errorf("%s, not %s", got, c.want)
		}
		if got := encode(t, jsonout.JSON(), batch); got != "[\n"+c.want+"\n]\n" {
			t.Errorf("as an array: %s", got)
		}
		batch.Release()
	}
}

func TestArrayShape(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	schema := loadtest.Columns("n", arrow.PrimitiveTypes.Int64)
	for rows, want := range []string{"[]\n", "[\n{\"n\":0}\n]\n", "[\n{\"n\":0},\n{\"n\":1}\n]\n"} {
		batch := loadtest.Build(mem, schema, rows, func(b array.Builder, _, row int) { b.(*array.Int64Builder).Append(int64(row)) })
		if got := encode(t, jsonout.JSON(), batch); got != want {
			t.Errorf("%d rows: %q, not %q", rows, got, want)
		}
		batch.Release()
	}
	var none bytes.Buffer
	e, err := jsonout.NDJSON().New(&none, schema, load.EncodeOptions{})
	if err = errors.Join(err, e.Close()); err != nil || none.Len() != 0 {
		t.Errorf("no rows as NDJSON: %q, %v", &none, err)
	}
}

// FuzzRoundTrip holds the encoder to encoding/json: the same string and number
// come back, and bytes that are not UTF-8 as encoding/json replaces them.
func FuzzRoundTrip(f *testing.F) {
	for i, s := range append(loadtest.HostileStrings(), "\xff", "\xe2\x80\xa8", "\xe2\x80", "a\xc3", "\xed\xa0\x80") {
		f.Add(s, float64(i)/3)
	}
	f.Add("", math.MaxFloat64)
	f.Add("", math.Copysign(0, -1))
	f.Fuzz(func(t *testing.T, s string, number float64) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(t, 0)
		batch := one(mem, "k", s, number)
		defer batch.Release()
		got := encode(t, jsonout.NDJSON(), batch)
		if !utf8.ValidString(got) || strings.Count(got, "\n") != 1 {
			t.Fatalf("not one line of UTF-8: %q", got)
		}
		var back struct {
			K string
			F *float64
		}
		if err := json.Unmarshal([]byte(got), &back); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		std, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want string
		if err := json.Unmarshal(std, &want); err != nil {
			t.Fatal(err)
		}
		if back.K != want {
			t.Errorf("the string is %q, not %q", back.K, want)
		}
		if finite := !math.IsNaN(number) && !math.IsInf(number, 0); finite != (back.F != nil) ||
			finite && math.Float64bits(*back.F) != math.Float64bits(number) {
			t.Errorf("%v came back from %s", number, got)
		}
	})
}
