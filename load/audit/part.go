package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/load"
)

// part checks one part. What is damaged becomes a problem. The error is of what could not
// be read.
func (c *checking) part(ctx context.Context, p load.Part) error {
	opener, ok := c.Dest.(load.Opener)
	if !ok {
		return errors.New("objects of this destination cannot be read back")
	}
	object, err := opener.Open(ctx, p.Path)
	if errors.Is(err, load.ErrNotExist) {
		c.add(Missing, p, "it is missing")
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = object.Close() }() // read only
	file, done, err := c.fetched(object)
	if err != nil {
		return err
	}
	defer done()
	sum := sha256.New()
	n, err := io.Copy(sum, file)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", p.Path, err)
	case n != p.Bytes:
		c.add(Length, p, "it has %d bytes instead of %d", n, p.Bytes)
		return nil
	case hex.EncodeToString(sum.Sum(nil)) != p.SHA256:
		c.add(Bytes, p, "its SHA-256 is not the manifest's: its bytes were changed")
		return nil
	}
	if err := c.letters(ctx, p); err != nil {
		return err
	}
	return c.content(ctx, p, io.NewSectionReader(file, 0, n))
}

// letters checks the dead letters of a part, which lie beside it.
func (c *checking) letters(ctx context.Context, p load.Part) error {
	if p.Letters == "" {
		return nil
	}
	data, _, err := c.Dest.Get(ctx, load.RejectsName(p.Letters))
	if err != nil && !errors.Is(err, load.ErrNotExist) {
		return err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != p.Letters {
		c.add(Letters, p, "its dead letters %s are missing or damaged", load.RejectsName(p.Letters))
	}
	return nil
}

// fetched returns a file with an object's bytes, which begins at its start. The objects of
// a store are written to a temporary file, which done removes.
func (c *checking) fetched(object io.Reader) (file *os.File, done func(), err error) {
	if file, ok := object.(*os.File); ok {
		return file, func() {}, nil
	}
	if file, err = os.CreateTemp(c.TempDir, "formetl-verify-*"); err != nil {
		return nil, nil, err
	}
	done = func() { _, _ = file.Close(), os.Remove(file.Name()) } // it holds what the store has
	if _, err = io.Copy(file, object); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
	}
	return file, done, err
}

// content checks what a part holds, once its bytes are those of the manifest.
func (c *checking) content(ctx context.Context, p load.Part, file *io.SectionReader) error {
	found, ids, err := c.scan(file, p)
	if err != nil {
		c.add(Unreadable, p, "it cannot be read as %s: %v", c.Manifest.Format, err)
		return nil
	}
	if found.Rows != p.Rows {
		c.add(Rows, p, "it holds %d rows, and the manifest says %d", found.Rows, p.Rows)
	}
	c.mu.Lock()
	c.rows += found.Rows
	c.mu.Unlock()
	if c.ids == "" {
		return nil
	}
	return c.identities(ctx, p, found.Rows, ids)
}

// scan reads a part back.
func (c *checking) scan(file *io.SectionReader, p load.Part) (found load.Scanned, ids *roaring64.Bitmap, err error) {
	format, known := c.Format(c.Manifest.Format)
	if !known {
		return found, nil, errors.New("the format is not known")
	}
	var from io.Reader = file
	if format.Text {
		plain, err := load.Decompress(file, load.CodecOf(p.Path))
		if err != nil {
			return found, nil, err
		}
		defer func() { _ = plain.Close() }() // read only
		from = plain
	}
	ids = roaring64.New()
	id := c.ids
	if c.Manifest.Profile == excel {
		id = load.ForSheets(id)
	}
	found, err = format.Scan(from, id, func(id int64) error {
		ids.Add(uint64(id)) //nolint:gosec // ids are not negative, and a negative one is found by the bounds
		return nil
	})
	return found, ids, err
}

// excel is the profile whose headings may have a ' in front.
const excel = "excel"

// identities compares the ids of a part's rows with the manifest, with its id set, and
// with those of the other parts.
func (c *checking) identities(ctx context.Context, p load.Part, rows int64, ids *roaring64.Bitmap) error {
	if c.outside(ids, p) {
		c.add(IDs, p, "its ids go from %d to %d, and the manifest says from %d to %d", ids.Minimum(), ids.Maximum(), p.MinID, p.MaxID)
	}
	if p.IDs != "" {
		problem, err := c.idSet(ctx, p, ids)
		if err != nil {
			return err
		}
		if problem != "" {
			c.add(IDs, p, "%s", problem)
		}
	}
	if c.child {
		return nil // a result has a row for each element, and parts are as those of the main output
	}
	if n := rows - int64(ids.GetCardinality()); n > 0 { //nolint:gosec // at most the rows
		c.add(Twice, p, "%d of its rows repeat the id of another one of its rows", n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if both := roaring64.And(c.seen, ids); !both.IsEmpty() {
		c.Add(Twice, p, "%d of its results are in other parts too, the first is %d", both.GetCardinality(), both.Minimum())
	}
	c.seen.Or(ids)
	return nil
}

// outside tells whether a part's ids are not those between its lowest and its highest. The
// first and last results of a child's part may have no element, and so no row.
func (c *checking) outside(ids *roaring64.Bitmap, p load.Part) bool {
	if ids.IsEmpty() {
		return false
	}
	least, most := uint64(p.MinID), uint64(p.MaxID) //nolint:gosec // ids are not negative
	if c.child {
		return ids.Minimum() < least || ids.Maximum() > most
	}
	return ids.Minimum() != least || ids.Maximum() != most
}

// idSet compares a part's ids with its id set, by which later runs find results that moved.
func (c *checking) idSet(ctx context.Context, p load.Part, ids *roaring64.Bitmap) (problem string, err error) {
	data, _, err := c.Dest.Get(ctx, load.IDsName(p.IDs))
	if errors.Is(err, load.ErrNotExist) {
		return "its set of ids is missing", nil
	}
	if err != nil {
		return "", err
	}
	kept, err := load.DecodeIDs(data)
	switch {
	case err != nil || load.SumIDs(data) != p.IDs:
		return "its set of ids is damaged", nil //nolint:nilerr // that is the problem
	case c.child && roaring64.AndNot(ids, kept).IsEmpty():
		return "", nil // a result without elements has no row
	case !kept.Equals(ids):
		return "its set of ids is another than that of its rows", nil
	}
	return "", nil
}
