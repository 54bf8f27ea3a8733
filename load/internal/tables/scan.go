package tables

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/formetl/formetl/load"
)

// errRows means that bytes are no rows of a table.
var errRows = errors.New("the bytes are no rows of a table")

// scan implements load.Scan.
func scan(r io.Reader, id string, each func(id int64) error) (load.Scanned, error) {
	in := bufio.NewReaderSize(r, flushAt)
	line, err := readHeader(in)
	if err != nil {
		return load.Scanned{}, err
	}
	h, err := DecodeHeader(line)
	if err != nil {
		return load.Scanned{}, errRows
	}
	found := load.Scanned{}
	for _, c := range h.Columns {
		found.Columns = append(found.Columns, c.Name)
	}
	at := slices.Index(found.Columns, id)
	if id != "" && at < 0 {
		return found, fmt.Errorf("there is no column %q", id)
	}
	for {
		fields, err := readInt(in, 2)
		if err != nil {
			return found, err
		}
		if fields == -1 {
			if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
				return found, errRows
			}
			return found, nil
		}
		if int(fields) != len(h.Columns) {
			return found, errRows
		}
		found.Rows++
		if err := scanRow(in, int(fields), at, each); err != nil {
			return found, err
		}
	}
}

// scanRow reads a row and calls each with the value of the column at an index, -1 for none.
func scanRow(in *bufio.Reader, fields, at int, each func(id int64) error) error {
	for i := range fields {
		length, err := readInt(in, 4)
		switch {
		case err != nil:
			return err
		case i == at && length != 8:
			return load.ErrScanID
		case i == at:
			high, err := readInt(in, 4)
			if err != nil {
				return err
			}
			low, err := readInt(in, 4)
			if err != nil {
				return err
			}
			if err := each(high<<32 | low&0xffffffff); err != nil {
				return err
			}
		case length > 0:
			if _, err := io.CopyN(io.Discard, in, length); err != nil {
				return errRows
			}
		case length < -1:
			return errRows
		}
	}
	return nil
}

// readHeader reads what stands in front of the rows, and returns the line of the header.
func readHeader(in *bufio.Reader) (line []byte, err error) {
	if line, err = in.ReadBytes('\n'); err != nil {
		return nil, errRows
	}
	begin := make([]byte, len(copySignature+copyFlags))
	if _, err := io.ReadFull(in, begin); err != nil || string(begin) != copySignature+copyFlags {
		return nil, errRows
	}
	return line, nil
}

// readInt reads a number of 2 or 4 bytes.
func readInt(in *bufio.Reader, size int) (int64, error) {
	var b [4]byte
	if _, err := io.ReadFull(in, b[:size]); err != nil {
		return 0, errRows
	}
	if size == 2 {
		return int64(int16(binary.BigEndian.Uint16(b[:]))), nil //nolint:gosec // the bits are kept
	}
	return int64(int32(binary.BigEndian.Uint32(b[:]))), nil //nolint:gosec // the bits are kept
}
