package xlsxout_test

import (
	"archive/zip"
	"bytes"
	"io"
	"testing"

	"github.com/formetl/formetl/load/xlsxout"
)

// FuzzScanSheet: a sheet that was damaged is read or refused, and what is read has
// columns for its rows.
func FuzzScanSheet(f *testing.F) {
	f.Add([]byte(`<worksheet><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>result_id</t></is></c></row><row r="2"><c r="A2"><v>7</v></c></row></sheetData></worksheet>`))
	f.Add([]byte(`<row><c r="XFD1"><v>1</v></c></row>`))
	f.Add([]byte(`<row><c r="ZZZZZZZZZZZZZZZ1"><v>1</v></c></row>`))
	f.Add([]byte(`<row><c r="B1"><is><t>_x0041_</t></is></c><c r="A1"/></row>`))
	f.Fuzz(func(t *testing.T, sheet []byte) {
		var file bytes.Buffer
		archive := zip.NewWriter(&file)
		w, err := archive.Create("xl/worksheets/sheet1.xml")
		if err == nil {
			_, err = w.Write(sheet)
		}
		if err == nil {
			err = archive.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		ids := int64(0)
		found, err := xlsxout.Format().Scan(io.NewSectionReader(bytes.NewReader(file.Bytes()), 0, int64(file.Len())), "result_id",
			func(int64) error { ids++; return nil })
		if err == nil && (ids > found.Rows || found.Rows > 0 && ids == 0 && len(found.Columns) == 1 && found.Columns[0] == "result_id") {
			t.Errorf("%d ids of %+v", ids, found)
		}
	})
}
