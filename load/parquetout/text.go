package parquetout

import (
	"bytes"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// textType keeps long texts from staying in memory. parquet-go v0.32.0 keeps
// the column index of every row group until the footer is written. Its bounds
// are cut to 16 bytes but refer to the memory of whole values: with texts of 3
// kB a part of 2 GB would keep 30 MB. Only the indexer is replaced, and the
// file's bytes are the same.
type textType struct {
	parquet.Type
}

// NewColumnIndexer wraps the type's own indexer.
func (t textType) NewColumnIndexer(sizeLimit int) parquet.ColumnIndexer {
	return textIndexer{t.Type.NewColumnIndexer(sizeLimit)}
}

type textIndexer struct{ parquet.ColumnIndexer }

// ColumnIndex gives the index with copies of the bounds.
func (x textIndexer) ColumnIndex() format.ColumnIndex {
	index := x.ColumnIndexer.ColumnIndex()
	for _, bounds := range [][][]byte{index.MinValues, index.MaxValues} {
		for i, b := range bounds {
			bounds[i] = bytes.Clone(b)
		}
	}
	return index
}
