package loadtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// Null is how Text writes a null. No answer of a form can hold it, because NUL
// is no XML character.
const Null = "\x00null"

// Read is a reader of a format that shares no code with its encoder. It returns
// the rows of a file as Text writes them.
type Read func(file []byte, schema *arrow.Schema) ([][]string, error)

// Text returns a batch's rows as strings, in one form for each type, to compare
// the results of readers.
func Text(batch arrow.RecordBatch) [][]string {
	out := make([][]string, batch.NumRows())
	for row := range out {
		out[row] = make([]string, batch.NumCols())
		for i, arr := range batch.Columns() {
			out[row][i] = Cell(arr, row)
		}
	}
	return out
}

// Cell returns one value as Text writes it: a string is unchanged, a float is
// the shortest text that reads back equal, and a decimal has the digits of its
// scale. A timestamp is RFC 3339 in UTC with six digits of a second. A list is
// its elements in brackets, each quoted as in Go or null.
func Cell(arr arrow.Array, row int) string {
	if arr.IsNull(row) {
		return Null
	}
	switch a := arr.(type) {
	case *array.String:
		return strings.Clone(a.Value(row)) // the batch may be released
	case *array.Int64:
		return strconv.FormatInt(a.Value(row), 10)
	case *array.Float64:
		return FloatText(a.Value(row))
	case *array.Boolean:
		return strconv.FormatBool(a.Value(row))
	case *array.Date32:
		return a.Value(row).ToTime().Format(time.DateOnly)
	case *array.Timestamp:
		return TimeText(time.UnixMicro(int64(a.Value(row))))
	case *array.Decimal128:
		return a.Value(row).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.List:
		start, end := a.ValueOffsets(row)
		var elements []string
		for i := start; i < end; i++ {
			elements = append(elements, Cell(a.ListValues(), int(i)))
		}
		return ListText(elements)
	}
	return fmt.Sprintf("an array of type %s", arr.DataType())
}

// FloatText is a float as Cell writes it.
func FloatText(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// TimeText is a timestamp as Cell writes it.
func TimeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// ListText is a list as Cell writes it, from its elements in the same form.
func ListText(elements []string) string {
	quoted := make([]string, len(elements))
	for i, e := range elements {
		quoted[i] = strconv.Quote(e)
		if e == Null {
			quoted[i] = "null"
		}
	}
	return "[" + strings.Join(quoted, ",") + "]"
}

// SplitList undoes the joining of a list in a cell: the elements between two |, without the
// \ that stands before a | or a \. The element \N is Null, and the empty text is the empty list.
func SplitList(s string) []string {
	if s == "" {
		return nil
	}
	elements := []string{""}
	last := func() *string { return &elements[len(elements)-1] }
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '|':
			elements = append(elements, "")
		case s[i] == '\\' && s[i+1] == 'N':
			i++
			*last() = Null
		case s[i] == '\\':
			i++
			*last() += s[i : i+1]
		default:
			*last() += s[i : i+1]
		}
	}
	return elements
}

// ParseText converts a scalar from its text in CSV and JSON to the form of
// Cell.
func ParseText(t arrow.DataType, text string) (string, error) {
	switch t.ID() {
	case arrow.FLOAT64:
		f, err := strconv.ParseFloat(text, 64)
		return FloatText(f), err
	case arrow.TIMESTAMP:
		at, err := time.Parse(time.RFC3339Nano, text)
		return TimeText(at), err
	case arrow.INT64:
		n, err := strconv.ParseInt(text, 10, 64)
		return strconv.FormatInt(n, 10), err
	}
	return text, nil
}

// ParquetLines gives the schema of a Parquet file, with the metadata of its footer, and its rows
// as NDJSON in Arrow's manner.
func ParquetLines(data []byte) (schema *arrow.Schema, lines []byte, err error) {
	table, err := pqarrow.ReadTable(context.Background(), bytes.NewReader(data), parquet.NewReaderProperties(nil), pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, nil, err
	}
	defer table.Release()
	var text bytes.Buffer
	batches := array.NewTableReader(table, 0)
	defer batches.Release()
	for batches.Next() {
		if err := array.RecordToJSON(batches.RecordBatch(), &text); err != nil {
			return nil, nil, err
		}
	}
	return table.Schema(), text.Bytes(), batches.Err()
}

// Field is a field of a CSV file, and whether it stood in quotes: null is empty without them.
type Field struct {
	Text   string
	Quoted bool
}

// ParseCSV reads CSV by RFC 4180 with \n, byte by byte, and shares no code with the encoder. A
// file that is cut is an error. encoding/csv would not do: it changes line ends in values, and
// does not tell whether a field stood in quotes.
func ParseCSV(file, delimiter string) (rows [][]Field, err error) {
	for len(file) > 0 {
		var row []Field
		for end := delimiter; end == delimiter; {
			var f Field
			if f, file, err = parseField(file, delimiter); err != nil {
				return nil, fmt.Errorf("row %d: %w", len(rows), err)
			}
			row = append(row, f)
			end, file = file[:1], file[1:]
			if end != delimiter && end != "\n" {
				return nil, fmt.Errorf("row %d: a field ends with %q", len(rows), end)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// parseField reads the field at the start of s, behind which rest has a byte at least.
func parseField(s, delimiter string) (f Field, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, delimiter+"\r\n\"")
		if end < 0 {
			return f, "", errors.New("the file ends within a field")
		}
		return Field{Text: s[:end]}, s[end:], nil
	}
	var text strings.Builder
	for s = s[1:]; ; s = s[1:] {
		inside, behind, closed := strings.Cut(s, `"`)
		if !closed || behind == "" {
			return f, "", errors.New("the file ends within quotes or behind them")
		}
		text.WriteString(inside)
		if s = behind; s[0] != '"' {
			return Field{Text: text.String(), Quoted: true}, s, nil
		}
		text.WriteByte('"')
	}
}
