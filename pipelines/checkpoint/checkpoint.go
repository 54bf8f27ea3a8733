package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// Pace bounds what is lost of a window when a process is killed: a piece ends
// with the page that reaches one of these.
type Pace struct {
	Results int
	Every   time.Duration
	Bytes   int // of rows, in memory until the piece ends
}

// The paces of a checkpoint on the local disk, and of one at a destination,
// where each object costs a request.
var (
	localPace  = Pace{Results: 1000, Every: time.Second, Bytes: 8 << 20}
	remotePace = Pace{Results: 5000, Every: 10 * time.Second, Bytes: 32 << 20}
)

// Checkpoint is what runs have read of a form. It may be used by several
// goroutines at once.
type Checkpoint struct {
	Pace  Pace
	Place string // a path or an address, for people

	store store
	lock  *lock // nil at a destination, whose lease stands for it

	buffers sync.Pool // of *bytes.Buffer: the rows of pieces that are written
	rooms   sync.Pool // of *[]byte: the rows of pieces that are read back

	next  atomic.Int64 // number of the next piece
	begun atomic.Bool  // it has a header: the next run may take pieces over
}

// Header says whose a checkpoint is, and under what conditions another run may
// take its pieces over.
type Header struct {
	Version    int       `json:"version"`
	RunID      string    `json:"run_id"` // of the run that wrote it last
	OpenedAt   time.Time `json:"opened_at"`
	Pipeline   string    `json:"pipeline"`
	Form       string    `json:"form"`
	Definition string    `json:"definition"` // absolute path of the definition, "" for an export
	// Fingerprint is equal for definitions that read the same rows.
	Fingerprint string `json:"fingerprint"`
	Full        bool   `json:"full,omitempty"` // the run was to replace everything
	// Trusted tells that a page of fewer results than usual was taken for the
	// last of its window. Then what was read must be compared with counts.
	Trusted bool `json:"trusted,omitempty"`
	// Bases are the versions of the outputs' manifests by the outputs' paths.
	Bases map[string]string `json:"bases"`
	// Inferred are the columns that the rows begin with where no schema declares
	// them, and Headings the labels that they were named by.
	Inferred []load.Column  `json:"inferred,omitempty"`
	Headings []page.Heading `json:"headings,omitempty"`
	// Counts are what the service counted when the windows were planned.
	Counts []Count `json:"counts,omitempty"`
}

// Count is how many results the service counted in a span of time.
type Count struct {
	Window load.Range `json:"window"`
	N      int64      `json:"n"`
	At     time.Time  `json:"at"`
}

// headerVersion is the version of the header and the records. Another one is not
// read.
const headerVersion = 1

// Is tells whether the header is of a definition's form.
func (h Header) Is(pipeline, form, definition string) bool {
	return h.Pipeline == pipeline && h.Form == form && h.Definition == definition
}

// Begin writes the header, in place of one that is there. Without a header no other
// run takes the pieces over.
func (c *Checkpoint) Begin(ctx context.Context, h Header) error {
	h.Version = headerVersion
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := c.store.put(ctx, headerName, seal(data)); err != nil {
		return err
	}
	c.begun.Store(true)
	return nil
}

func decodeHeader(data []byte) (h Header, err error) {
	if data, err = unseal(data); err != nil {
		return h, fmt.Errorf("its header is damaged: %w", err)
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("its header is damaged: %w", err)
	}
	if h.Version != headerVersion {
		return h, fmt.Errorf("its version is %d, and this program reads %d", h.Version, headerVersion)
	}
	return h, nil
}

// Seen is what the rows of a piece hold, by source.
func (c *Checkpoint) Seen(ctx context.Context, p Piece) (map[schemas.Source]transform.Seen, error) {
	r, err := c.record(ctx, p.number)
	return r.Stats.Seen, err
}

func (c *Checkpoint) record(ctx context.Context, number int) (r record, err error) {
	data, err := c.store.get(ctx, objectName(number, recordSuffix), nil)
	if err != nil {
		return r, err
	}
	if data, err = unseal(data); err != nil {
		return r, err
	}
	return r, json.Unmarshal(data, &r)
}

// Rows gives the record batches of a piece in order. A batch is valid during
// the call.
func (c *Checkpoint) Rows(ctx context.Context, p Piece, visit func(arrow.RecordBatch) error) error {
	if len(p.streams) == 0 {
		return nil
	}
	room, _ := c.rooms.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	defer c.rooms.Put(room)
	data, err := c.rows(ctx, p, *room)
	if err != nil {
		return err
	}
	*room = data
	for _, s := range p.streams {
		if err := eachBatch(data[:s.Bytes], visit); err != nil {
			return err
		}
		data = data[s.Bytes:]
	}
	return nil
}

// rows reads the streams of a piece and checks that they are whole.
func (c *Checkpoint) rows(ctx context.Context, p Piece, room []byte) ([]byte, error) {
	name := objectName(p.number, rowsSuffix)
	data, err := c.store.get(ctx, name, room)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	rest := data
	for _, s := range p.streams {
		if s.Bytes < 0 || s.Bytes > int64(len(rest)) || crc32.Checksum(rest[:s.Bytes], castagnoli) != s.CRC {
			return nil, fmt.Errorf("%s does not hold what was written", name)
		}
		rest = rest[s.Bytes:]
	}
	return data, nil
}

func eachBatch(data []byte, visit func(arrow.RecordBatch) error) error {
	r, err := ipc.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
		if err := visit(r.RecordBatch()); err != nil {
			return err
		}
	}
	return r.Err()
}

// Forget removes pieces: their records first, so that no record lacks its rows.
func (c *Checkpoint) Forget(ctx context.Context, pieces ...Piece) error {
	for _, suffix := range []string{recordSuffix, rowsSuffix} {
		for _, p := range pieces {
			if suffix == rowsSuffix && len(p.streams) == 0 {
				continue
			}
			if err := c.store.remove(ctx, objectName(p.number, suffix)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Clear removes everything: the header first, so that no run takes over a part of
// it.
func (c *Checkpoint) Clear(ctx context.Context) error {
	names, err := c.store.list(ctx)
	if err != nil {
		return err
	}
	if i := slices.Index(names, headerName); i > 0 {
		names[0], names[i] = names[i], names[0]
	}
	for _, name := range names {
		if err := c.store.remove(ctx, name); err != nil {
			return err
		}
	}
	c.begun.Store(false)
	return nil
}

// Close ends the use of the checkpoint by its run. With keep, a checkpoint with a
// header stays for the next run; else everything is removed.
func (c *Checkpoint) Close(ctx context.Context, keep bool) error {
	if c == nil {
		return nil
	}
	var err error
	if !keep || !c.Begun() {
		err = c.Clear(ctx)
	}
	if c.lock != nil {
		err = errors.Join(err, c.lock.release())
	}
	return err
}

// TempDir is a folder of the run for temporary files, "" for the system's.
func (c *Checkpoint) TempDir() string {
	if at, local := c.store.(folder); local {
		return string(at)
	}
	return ""
}

// Begun tells whether the next run may take pieces over.
func (c *Checkpoint) Begun() bool { return c != nil && c.begun.Load() }
