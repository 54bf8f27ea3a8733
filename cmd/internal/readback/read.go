// Package readback reads what formetl wrote, for the tests that look at it
// from outside: data files of every format but Excel, and manifests. It shares no code
// with the encoders but the libraries beneath them, and it is strict: a file
// that is cut, or holds more than it should, is an error. Begin reading at Read.
package readback

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Read reads the rows of a data file, whose name tells its format. Where a file
// has headings, they must be the layout's columns in their order.
func Read(name string, data []byte, l Layout) ([]Row, error) {
	stem, data, err := expand(name, data)
	if err != nil {
		return nil, err
	}
	var rows []Row
	switch path.Ext(stem) {
	case ".csv":
		rows, err = readCSV(data, l)
	case ".ndjson", ".json":
		rows, err = readJSON(data, path.Ext(stem) == ".json", l)
	case ".parquet":
		rows, err = readParquet(data, l)
	case ".arrow":
		rows, err = readArrow(data, l)
	default:
		err = fmt.Errorf("%s is of no format that is known", name)
	}
	for _, row := range rows {
		maps.DeleteFunc(row, func(_ string, c Cell) bool { return c.IsNull() })
	}
	return rows, err
}

// IsData tells whether a glob for data finds a name.
func IsData(name string) bool {
	stem := strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	return slices.Contains([]string{".csv", ".ndjson", ".json", ".parquet", ".arrow", ".xlsx"}, path.Ext(stem)) &&
		!strings.HasSuffix(name, ".manifest.json") && path.Base(name) != ManifestName
}

// expand undoes the compression around a text file.
func expand(name string, data []byte) (stem string, plain []byte, err error) {
	var r io.Reader
	switch path.Ext(name) {
	case ".gz":
		r, err = gzip.NewReader(bytes.NewReader(data))
	case ".zst":
		r, err = zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1)) // with 1 it has no goroutines to close
	default:
		return name, data, nil
	}
	if err == nil {
		plain, err = io.ReadAll(r)
	}
	return strings.TrimSuffix(name, path.Ext(name)), plain, err
}
