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

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// First and Last bound the ids of a window. The window's first piece begins after First,
// and its last piece reaches through Last.
const (
	First = int64(-1)
	Last  = int64(math.MaxInt64)
)

// Piece is a part of a window that was read: the results with ids greater than
// After and at most Through.
type Piece struct {
	Window  extract.Window `json:"-"`
	After   int64          `json:"after"`
	Through int64          `json:"through"`
	// Open means that the piece ends with a page that was not full, so that no result is
	// expected from there up to the next piece, although none was requested. If the piece
	// before ends with that page, this one holds no ids.
	Open    bool      `json:"open,omitempty"`
	Passing bool      `json:"passing,omitempty"` // only the run that read the piece may use it
	ReadAt  time.Time `json:"read_at"`           // when the piece's first request was sent
	Run     string    `json:"run"`               // id of the run that read the piece

	IDs      idset.Set          `json:"-"` // ids of rows and of rejected results
	Stats    transform.Stats    `json:"-"` // statistics without Seen; see Checkpoint.Seen
	Rejects  []transform.Reject `json:"rejects,omitempty"`
	Headings []page.Heading     `json:"headings,omitempty"` // labels in the piece's pages; only first pages have them
	Replaced int64              `json:"replaced,omitempty"` // number of replaced characters that XML forbids

	number  int    // the number in the names of the piece's objects
	by      string // the part of these names that stands for the run that wrote them
	streams []stream
}

// stream is one Arrow IPC stream with rows of a piece. A piece has several
// streams if columns were added while it was read.
type stream struct {
	Bytes int64  `json:"bytes"`
	CRC   uint32 `json:"crc32c"`
}

// Results returns how many results the piece holds, including rejected ones.
func (p Piece) Results() int64 { return p.Stats.Rows + p.Stats.Rejected }

// RowIDs returns the ids of the piece's rows, without those of rejected results.
func (p Piece) RowIDs() idset.Set { return p.IDs.Without(RejectedIDs(p.Rejects)) }

// RejectedIDs returns the ids of rejected results.
func RejectedIDs(rejects []transform.Reject) idset.Set {
	var ids idset.Builder
	for _, r := range rejects {
		ids.Add(r.ResultID)
	}
	return ids.Set()
}

// Chain holds pieces of one window in ascending order of ids. Gaps may lie between
// them, because several goroutines may read a window from several ids on.
type Chain struct {
	Window extract.Window
	Pieces []Piece
}

// Gap is a range of ids that no piece of a chain covers: those above After, up to
// Through.
type Gap struct{ After, Through int64 }

// Gaps returns the ids that the chain does not cover, in ascending order.
func (c Chain) Gaps() (gaps []Gap) {
	at := First
	for _, p := range c.Pieces {
		if at < p.After {
			gaps = append(gaps, Gap{at, p.After})
		}
		at = p.Through
	}
	if at != Last {
		gaps = append(gaps, Gap{at, Last})
	}
	return gaps
}

// Ended tells whether the chain needs no more reading: no result is expected in the ids that
// it does not cover.
func (c Chain) Ended() bool { return len(c.Unread()) == 0 }

// Unread returns the gaps of the chain in which results are expected: those that do not
// begin behind a piece that is Open.
func (c Chain) Unread() []Gap {
	return slices.DeleteFunc(c.Gaps(), func(g Gap) bool {
		return slices.ContainsFunc(c.Pieces, func(p Piece) bool { return p.Open && p.Through == g.After })
	})
}

// Add inserts a piece. The chain must not cover any id of the piece yet.
func (c *Chain) Add(p Piece) {
	at, _ := slices.BinarySearchFunc(c.Pieces, p, func(a, b Piece) int { return cmp.Compare(a.After, b.After) })
	c.Pieces = slices.Insert(c.Pieces, at, p)
}

// Results returns how many results the chain holds, including rejected ones.
func (c Chain) Results() (n int64) {
	for _, p := range c.Pieces {
		n += p.Results()
	}
	return n
}

// IDs returns the set of all ids of the chain.
func (c Chain) IDs() idset.Set {
	sets := make([]idset.Set, len(c.Pieces))
	for i, p := range c.Pieces {
		sets[i] = p.IDs
	}
	return idset.Union(sets...)
}

// chains groups pieces by window and orders them into chains. It leaves out chains that
// share a result, because only a new reading shows which window has the result now.
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
	sets := make([]idset.Set, len(all))
	for i, c := range all {
		sets[i] = c.IDs()
	}
	_, twice := idset.Overlap(sets...)
	return slices.DeleteFunc(all, func(c Chain) bool { return c.IDs().Intersects(twice) })
}

// chainOf orders the pieces of a window into a chain. It leaves out pieces that
// overlap those before them.
func chainOf(w extract.Window, pieces []Piece) Chain {
	slices.SortFunc(pieces, func(a, b Piece) int {
		return cmp.Or(cmp.Compare(a.After, b.After), cmp.Compare(b.number, a.number)) // the newer piece comes first
	})
	c := Chain{Window: w}
	through := First
	for _, p := range pieces {
		if p.After >= through {
			c.Pieces, through = append(c.Pieces, p), p.Through
		}
	}
	return c
}

// record is a piece in the form that is stored beside its rows.
type record struct {
	Piece
	Window  load.Range `json:"window"`
	IDs     []byte     `json:"ids"` // the piece's ids, encoded by idset.Encode
	Stats   stats      `json:"stats"`
	Streams []stream   `json:"streams,omitempty"`
}

// stats are a piece's statistics in the form that is stored, with the added columns as
// manifests have them.
type stats struct {
	transform.Stats
	Added []load.Column `json:"added,omitempty"`
}

// piece converts a record to a piece. at has the number and the run of the record's name. The
// error says that the record contradicts itself.
func (r record) piece(at Piece) (p Piece, err error) {
	p = r.Piece
	p.Window = extract.Window{From: r.Window.From.Time, To: r.Window.To.Time}
	p.Stats, p.number, p.by, p.streams = r.Stats.Stats, at.number, at.by, r.Streams
	p.Stats.Seen = nil
	if p.IDs, err = idset.Decode(r.IDs); err != nil {
		return p, err
	}
	if p.Stats.Added, err = DecodeColumns(r.Stats.Added); err != nil {
		return p, err
	}
	n := p.Results()
	switch {
	case p.After > p.Through || n != int64(p.IDs.Len()):
		return p, errors.New("its numbers do not agree")
	case p.Stats.Rows > 0 && len(p.streams) == 0:
		return p, errors.New("its rows are missing")
	case n > 0 && (p.IDs.Min() <= p.After || p.IDs.Max() > p.Through):
		return p, errors.New("some of its ids are outside its range")
	}
	return p, nil
}

// castagnoli is the table for CRC-32C checksums, which processors compute fast.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal puts a checksum before data. unseal removes it again, and returns an
// error if the data do not match it.
func seal(data []byte) []byte {
	return append(fmt.Appendf(nil, "%08x ", crc32.Checksum(data, castagnoli)), data...)
}

// ErrDamaged means that an object of the checkpoint is missing or does not hold what was written.
var ErrDamaged error = damagedError{}

type damagedError struct{}

// Error says that the object does not hold what was written.
func (damagedError) Error() string { return "it does not hold what was written" }

// Temporary returns true: another run reads again what is damaged.
func (damagedError) Temporary() bool { return true }

func unseal(data []byte) ([]byte, error) {
	sum, rest, ok := bytes.Cut(data, []byte(" "))
	if want := fmt.Appendf(nil, "%08x", crc32.Checksum(rest, castagnoli)); !ok || !bytes.Equal(sum, want) {
		return nil, ErrDamaged
	}
	return rest, nil
}

// These are the names, or suffixes of the names, of a checkpoint's objects. None is the
// extension of a data format, so patterns for data files do not match these objects.
const (
	headerName   = "header"
	recordSuffix = "-record"
	rowsSuffix   = "-rows"
)

// object returns the name of an object of the piece. The name stands for the run too, so that
// a process which has lost its lease and writes late replaces nothing.
func (p Piece) object(suffix string) string { return fmt.Sprintf("%07d-%s%s", p.number, p.by, suffix) }

// pieceOf returns a piece with the number and the run in the name of a record or rows object.
// ok is false for names of other objects.
func pieceOf(name string) (p Piece, isRecord, ok bool) {
	piece, isRecord := strings.CutSuffix(name, recordSuffix)
	if !isRecord {
		if piece, ok = strings.CutSuffix(name, rowsSuffix); !ok {
			return p, false, false
		}
	}
	digits, by, ok := strings.Cut(piece, "-")
	n, err := strconv.ParseUint(digits, 10, 31)
	p.number, p.by = int(n), by //nolint:gosec // ParseUint bounds n to 31 bits
	return p, isRecord, ok && err == nil
}

// EncodeColumns describes inferred columns for a manifest or a checkpoint. Such columns have
// no rules for personal data or errors.
func EncodeColumns(columns []schemas.Column) []load.Column {
	list := make([]load.Column, 0, len(columns))
	for _, c := range columns {
		list = append(list, load.Column{Name: c.Name, Type: c.Type.String(), From: c.From.String(), Label: c.Label})
	}
	return list
}

// DecodeColumns reads inferred columns of a manifest or a checkpoint. It
// returns an error if no schema may have such columns.
func DecodeColumns(list []load.Column) ([]schemas.Column, error) {
	if len(list) == 0 {
		return nil, nil
	}
	columns := make([]schemas.Column, 0, len(list))
	for i, c := range list {
		t, err := schemas.ParseType(c.Type)
		if err != nil {
			return nil, fmt.Errorf("column %d: %w", i+1, err)
		}
		from, err := schemas.ParseSource(c.From)
		if err != nil {
			return nil, fmt.Errorf("column %d: %w", i+1, err)
		}
		columns = append(columns, schemas.Column{Name: c.Name, From: from, Type: t, Label: c.Label, Inferred: true})
	}
	if err := (&schemas.Schema{Columns: columns}).Validate(); err != nil {
		return nil, err
	}
	return columns, nil
}
