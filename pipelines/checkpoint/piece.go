package checkpoint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/transform"
)

// Bounds of the ids that a piece holds: a window's first piece begins after
// First, its last one reaches through Last.
const (
	First = int64(-1)
	Last  = int64(math.MaxInt64)
)

// Piece is what was read of a window: the results whose ids lie above After
// and up to Through.
type Piece struct {
	Window  extract.Window `json:"-"`
	After   int64          `json:"after"`
	Through int64          `json:"through"`
	// Whole tells that the piece counts only with all others of its window. The
	// service does not page by ids, so another run cannot read on from the
	// piece.
	Whole   bool      `json:"whole,omitempty"`
	Passing bool      `json:"passing,omitempty"` // only the run that read the piece may use it
	ReadAt  time.Time `json:"read_at"`           // before the first request for its results was sent
	Run     string    `json:"run"`               // id of the run that read it

	IDs      *roaring64.Bitmap  `json:"-"`     // of rows and rejects
	Stats    transform.Stats    `json:"stats"` // without Seen, which Checkpoint.Seen gives
	Rejects  []transform.Reject `json:"rejects,omitempty"`
	Replaced int64              `json:"replaced,omitempty"` // characters that XML forbids

	number  int // names its objects
	streams []stream
}

// stream is one Arrow IPC stream of a piece's rows. A piece has several where
// columns were added while it was read.
type stream struct {
	Bytes int64  `json:"bytes"`
	CRC   uint32 `json:"crc32c"`
}

// Results is how many results the piece holds: rows and rejects.
func (p Piece) Results() int64 { return p.Stats.Rows + p.Stats.Rejected }

// RowIDs are the ids of the piece's rows, in their order.
func (p Piece) RowIDs() *roaring64.Bitmap {
	ids := p.IDs.Clone()
	for _, r := range p.Rejects {
		ids.Remove(uint64(r.ResultID)) //nolint:gosec // ids are not negative
	}
	return ids
}

// Chain is the pieces of one window, in ascending order of ids and without a
// gap between them.
type Chain struct {
	Window extract.Window
	Pieces []Piece
}

// Complete tells whether the chain holds all of its window.
func (c Chain) Complete() bool { return c.Through() == Last }

// Through is the id up to which the chain holds its window.
func (c Chain) Through() int64 {
	if len(c.Pieces) == 0 {
		return First
	}
	return c.Pieces[len(c.Pieces)-1].Through
}

// Results is how many results the chain holds: rows and rejects.
func (c Chain) Results() (n int64) {
	for _, p := range c.Pieces {
		n += p.Results()
	}
	return n
}

// IDs is the set of all ids of the chain.
func (c Chain) IDs() *roaring64.Bitmap {
	ids := roaring64.New()
	for _, p := range c.Pieces {
		ids.Or(p.IDs)
	}
	return ids
}

// chains puts pieces together by their windows. It leaves out pieces that cannot
// be read on from. It also leaves out chains that hold the same result, because
// only another reading can tell which window has it now.
func chains(pieces []Piece) []Chain {
	byWindow := map[extract.Window][]Piece{}
	for _, p := range pieces {
		byWindow[p.Window] = append(byWindow[p.Window], p)
	}
	all := make([]Chain, 0, len(byWindow))
	for w, list := range byWindow {
		if c := chainOf(w, list); len(c.Pieces) > 0 {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Chain) int {
		return cmp.Or(a.Window.From.Compare(b.Window.From), a.Window.To.Compare(b.Window.To))
	})
	return withoutDoubles(all)
}

// chainOf orders the pieces of a window as far as they follow on each other.
func chainOf(w extract.Window, pieces []Piece) Chain {
	slices.SortFunc(pieces, func(a, b Piece) int {
		return cmp.Or(cmp.Compare(a.After, b.After), cmp.Compare(b.number, a.number)) // the later reading first
	})
	c := Chain{Window: w}
	for _, p := range pieces {
		if p.After == c.Through() {
			c.Pieces = append(c.Pieces, p)
		}
	}
	if !c.Complete() && slices.ContainsFunc(c.Pieces, func(p Piece) bool { return p.Whole }) {
		return Chain{Window: w}
	}
	return c
}

func withoutDoubles(all []Chain) []Chain {
	sets := make([]*roaring64.Bitmap, len(all))
	seen, twice := roaring64.New(), roaring64.New()
	for i, c := range all {
		sets[i] = c.IDs()
		twice.Or(roaring64.And(seen, sets[i]))
		seen.Or(sets[i])
	}
	var kept []Chain
	for i, c := range all {
		if !sets[i].Intersects(twice) {
			kept = append(kept, c)
		}
	}
	return kept
}

// record is a piece as it is kept beside its rows.
type record struct {
	Piece
	Window  load.Range    `json:"window"`
	IDs     []byte        `json:"ids"` // a roaring bitmap
	Added   []load.Column `json:"added,omitempty"`
	Streams []stream      `json:"streams,omitempty"`
}

// piece gives the piece of a record, and checks that it agrees with itself.
func (r record) piece(number int) (p Piece, err error) {
	p = r.Piece
	p.Window = extract.Window{From: r.Window.From.Time, To: r.Window.To.Time}
	p.Stats.Seen, p.number, p.streams = nil, number, r.Streams
	if p.IDs, err = load.DecodeIDs(r.IDs); err != nil {
		return p, err
	}
	if p.Stats.Added, err = DecodeColumns(r.Added); err != nil {
		return p, err
	}
	n := p.Results()
	switch {
	case p.After >= p.Through || n < 0 || uint64(n) != p.IDs.GetCardinality():
		return p, errors.New("its numbers do not agree")
	case p.Stats.Rows > 0 && len(p.streams) == 0:
		return p, errors.New("it lacks its rows")
	case n > 0 && (!p.IDs.Contains(p.IDs.Minimum()) || int64(p.IDs.Minimum()) <= p.After || int64(p.IDs.Maximum()) > p.Through): //nolint:gosec // ids were int64
		return p, errors.New("its ids lie outside of it")
	}
	return p, nil
}

// castagnoli is the table of CRC-32C, for which processors have instructions.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal puts a checksum before data, and unseal takes it off again. It fails
// where the data are not those that were sealed.
func seal(data []byte) []byte {
	return append(fmt.Appendf(nil, "%08x ", crc32.Checksum(data, castagnoli)), data...)
}

func unseal(data []byte) ([]byte, error) {
	sum, rest, ok := bytes.Cut(data, []byte(" "))
	if want := fmt.Appendf(nil, "%08x", crc32.Checksum(rest, castagnoli)); !ok || !bytes.Equal(sum, want) {
		return nil, errors.New("it does not hold what was written")
	}
	return rest, nil
}

// The objects of a checkpoint. None ends in the extension of a data format, so
// that no pattern for data finds it.
const (
	headerName   = "header"
	lockName     = "lock"
	recordSuffix = "-record"
	rowsSuffix   = "-rows"
)

func objectName(number int, suffix string) string { return fmt.Sprintf("%07d%s", number, suffix) }

// numberOf is the number in the name of a piece's object.
func numberOf(name string) (number int, isRecord, ok bool) {
	digits, isRecord := strings.CutSuffix(name, recordSuffix)
	if !isRecord {
		digits = strings.TrimSuffix(name, rowsSuffix)
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	return int(n), isRecord, err == nil && digits != name //nolint:gosec // of 31 bits
}
