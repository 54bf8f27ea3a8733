package xlsxout

import (
	"archive/zip"
	"fmt"
	"io"
	"io/fs"
	"math"

	"github.com/klauspost/compress/flate"
	"github.com/xuri/excelize/v2"

	"github.com/formetl/formetl/load"
)

// writeBook writes the workbook's ZIP archive to w. excelize would build it in
// memory, with the sheets in random order. So excelize writes the whole
// workbook several times, and each time writeBook keeps one part: first each
// sheet in order, then the rest. Only one block is in memory at a time.
func writeBook(file *excelize.File, sheets int, w io.Writer) error {
	archive := zip.NewWriter(w)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.DefaultCompression)
	})
	for n := range sheets + 1 {
		part := &pass{archive: archive, sheets: sheets, only: n + 1}
		file.SetZipWriter(func(io.Writer) excelize.ZipWriter { return part })
		if err := file.Write(io.Discard); err != nil {
			return err
		}
		switch {
		case part.sheet != nil:
			if err := part.sheet.end(); err != nil {
				return err
			}
		case n < sheets:
			return fmt.Errorf("sheet %d is not where it is expected: this is a bug in formetl", n+1)
		}
	}
	return archive.Close()
}

// pass is one of the times that excelize writes the whole workbook. It keeps one
// sheet and drops everything else. The last pass keeps everything that is no sheet.
type pass struct {
	archive *zip.Writer
	sheets  int
	only    int       // number of the sheet; more than sheets in the last pass
	sheet   *unpiecer // nil until excelize writes the sheet
}

// Create implements excelize.ZipWriter. It drops an entry that this pass does not keep.
func (p *pass) Create(name string) (io.Writer, error) {
	var sheet int
	if n, err := fmt.Sscanf(name, "xl/worksheets/sheet%d.xml", &sheet); n != 1 || err != nil {
		sheet = p.sheets + 1
	}
	if sheet != p.only {
		return io.Discard, nil
	}
	w, err := p.archive.Create(name) // the entry gets no time
	if err != nil {
		return nil, err
	}
	part := &bounded{w: w, left: math.MaxUint32}
	if sheet > p.sheets {
		return part, nil
	}
	p.sheet = newUnpiecer(part)
	return p.sheet, nil
}

// AddFS implements excelize.ZipWriter. excelize does not call it.
func (p *pass) AddFS(fs.FS) error { return fs.ErrInvalid }

// Close implements excelize.ZipWriter. It does nothing, because more passes
// follow.
func (p *pass) Close() error { return nil }

// bounded refuses to write an entry of 4 GiB or more, because spreadsheets do
// not open an archive with such an entry.
type bounded struct {
	w    io.Writer
	left int64
}

// Write writes p, or returns a load.CellError if the entry becomes too large.
func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, &load.CellError{
			Format: "xlsx", Problem: "a sheet takes more than the 4 GiB that spreadsheets open",
			Hint: "divide the range, or write csv or parquet",
		}
	}
	return b.w.Write(p)
}
