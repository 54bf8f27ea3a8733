package parquetout

import (
	"errors"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/formetl/formetl/load"
)

// scan is the load.Scan of Parquet. Of the data it reads the column of ids alone.
func scan(r io.Reader, id string, each func(int64) error) (s load.Scanned, err error) {
	from, size, err := load.Anywhere(r)
	if err != nil {
		return s, err
	}
	defer load.Damaged(&err)
	file, err := parquet.OpenFile(from, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return s, err
	}
	for _, f := range file.Schema().Fields() {
		s.Columns = append(s.Columns, f.Name())
	}
	leaf, ok := file.Schema().Lookup(id)
	s.Rows = file.NumRows()
	if !ok {
		return s, nil
	}
	for _, group := range file.RowGroups() {
		if err := eachID(group.ColumnChunks()[leaf.ColumnIndex], each); err != nil {
			return s, err
		}
	}
	return s, nil
}

// eachID calls each with the values of a column.
func eachID(chunk parquet.ColumnChunk, each func(int64) error) error {
	pages := chunk.Pages()
	defer func() { _ = pages.Close() }() // read only
	values := make([]parquet.Value, 1024)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for from := page.Values(); ; {
			n, err := from.ReadValues(values)
			for _, v := range values[:n] {
				if err := eachValue(v, each); err != nil {
					return err
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		parquet.Release(page)
	}
}

func eachValue(v parquet.Value, each func(int64) error) error {
	if v.Kind() == parquet.Int64 {
		return each(v.Int64())
	}
	id, err := load.ScanID(v.String())
	if err != nil {
		return err
	}
	return each(id)
}
