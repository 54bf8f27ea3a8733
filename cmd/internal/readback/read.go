package readback

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Read reads the rows of a data file, whose name tells its format. A heading
// other than the layout's columns, in their order, is an error where a file has
// headings.
func Read(name string, data []byte, l Layout) ([]Row, error) {
	stem, data, err := expand(name, data)
	if err != nil {
		return nil, err
	}
	switch path.Ext(stem) {
	case ".csv":
		return readCSV(data, l)
	case ".ndjson", ".json":
		return readJSON(data, path.Ext(stem) == ".json", l)
	case ".parquet":
		return readParquet(data, l)
	case ".arrow":
		return readArrow(data, l)
	case ".xlsx":
		return readSheets(data, l)
	}
	return nil, fmt.Errorf("%s is of no format that is known", name)
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
		var z *zstd.Decoder
		if z, err = zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1)); err == nil {
			defer z.Close()
			r = z
		}
	default:
		return name, data, nil
	}
	if err == nil {
		plain, err = io.ReadAll(r)
	}
	return strings.TrimSuffix(name, path.Ext(name)), plain, err
}
