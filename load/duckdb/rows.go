//go:build duckdb

package duckdb

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	driver "github.com/duckdb/duckdb-go/v2"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
)

// secondsPerDay turns days into the seconds of a time.
const secondsPerDay = 24 * 60 * 60

// values are the driver's values.
func values() tables.Values {
	return tables.Values{
		Date:      func(days int32) any { return time.Unix(int64(days)*secondsPerDay, 0).UTC() },
		Timestamp: func(micros int64) any { return time.UnixMicro(micros).UTC() },
		Decimal: func(unscaled *big.Int, precision, scale int32) any {
			return driver.Decimal{Width: uint8(precision), Scale: uint8(scale), Value: unscaled} //nolint:gosec // at most 38
		},
	}
}

// Open reads an object from its beginning. The rows of a part are read from the table, and
// give the bytes that were staged unless somebody changed them. They are spooled, so that the
// database is closed while the caller reads.
func (d *Destination) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := load.CheckName(name); err != nil {
		return nil, err
	}
	if inFolder(name) {
		return d.folder.Open(ctx, name)
	}
	var opened io.ReadCloser
	err := d.with(ctx, "read", name, reading, func(s *session) error {
		found, err := s.Find(ctx, name)
		if err != nil {
			return err
		}
		if found.Data != nil {
			opened = io.NopCloser(bytes.NewReader(found.Data))
			return nil
		}
		opened, err = d.spool(func(to io.Writer) error { return s.print(ctx, found, to) })
		return err
	})
	return opened, err
}

// spool returns what write wrote, by a file without a name. It lies beside the database if
// one may write there.
func (d *Destination) spool(write func(to io.Writer) error) (io.ReadCloser, error) {
	file, err := os.CreateTemp(filepath.Dir(d.file), ".formetl-spool-*")
	if err != nil {
		file, err = os.CreateTemp("", ".formetl-spool-*")
	}
	if err != nil {
		return nil, err
	}
	s := &spooled{file}
	to := bufio.NewWriterSize(file, 1<<20)
	_ = os.Remove(file.Name()) // where a system refuses this, Close does it
	err = write(to)
	if err == nil {
		err = to.Flush()
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// spooled is a file that is removed when it is closed.
type spooled struct{ *os.File }

// Close closes and removes the file.
func (s *spooled) Close() error {
	err := s.File.Close()
	_ = os.Remove(s.Name()) // it may be gone already
	return err
}

// batchRows is how many rows are encoded at once.
const batchRows = 1024

// print writes the bytes of a part by the rows of the table.
func (s *session) print(ctx context.Context, found tables.Found, to io.Writer) (err error) {
	fields := make([]arrow.Field, len(found.Header.Columns))
	row, pointers := make([]any, len(fields)), make([]any, len(fields))
	for i, c := range found.Header.Columns {
		t, err := s.Dialect.Types.Parse(c.Type)
		if err != nil {
			return err
		}
		fields[i], pointers[i] = arrow.Field{Name: c.Name, Type: t, Nullable: true}, &row[i]
	}
	builder := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer builder.Release()
	rows, err := s.conn.QueryContext(ctx, found.Rows)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	encoder := tables.NewEncoder(to, found.Line)
	flush := func() error {
		batch := builder.NewRecordBatch()
		defer batch.Release()
		return encoder.Write(batch)
	}
	for n := 1; rows.Next(); n++ {
		if err := rows.Scan(pointers...); err != nil {
			return err
		}
		for i, v := range row {
			if err := appendValue(builder.Field(i), v); err != nil {
				return err
			}
		}
		if n%batchRows == 0 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(rows.Err(), flush()); err != nil {
		return err
	}
	return encoder.Close()
}

// appendValue appends a value of the driver.
func appendValue(to array.Builder, v any) error {
	ok := false
	switch to := to.(type) {
	case *array.Int64Builder:
		ok = appendAs(v, to.Append)
	case *array.Float64Builder:
		ok = appendAs(v, to.Append)
	case *array.BooleanBuilder:
		ok = appendAs(v, to.Append)
	case *array.StringBuilder:
		ok = appendAs(v, to.Append)
	case *array.Date32Builder:
		ok = appendAs(v, func(t time.Time) { to.Append(arrow.Date32(t.Unix() / secondsPerDay)) }) //nolint:gosec // DuckDB's days have 32 bits
	case *array.TimestampBuilder:
		ok = appendAs(v, func(t time.Time) { to.Append(arrow.Timestamp(t.UnixMicro())) })
	case *array.Decimal128Builder:
		ok = appendAs(v, func(d driver.Decimal) { to.Append(decimal128.FromBigInt(d.Value)) })
	case *array.ListBuilder:
		var err error
		ok = appendAs(v, func(list []any) {
			to.Append(true)
			for _, element := range list {
				err = errors.Join(err, appendValue(to.ValueBuilder(), element))
			}
		})
		if err != nil {
			return err
		}
	}
	switch {
	case v == nil:
		to.AppendNull()
	case !ok:
		return fmt.Errorf("the database gives a %T for a column of %s", v, to.Type())
	}
	return nil
}

// appendAs appends a value of a type, and tells whether it has the type.
func appendAs[T any](v any, add func(T)) bool {
	value, ok := v.(T)
	if ok {
		add(value)
	}
	return ok
}
