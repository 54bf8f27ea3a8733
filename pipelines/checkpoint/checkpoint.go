package checkpoint

import (
	"bytes"
	"cmp"
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
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// Pace limits how much of a window is lost when a process is killed. A piece of the window
// ends, and is written, after the page that reaches one of the limits.
type Pace struct {
	Results int
	Every   time.Duration
	Bytes   int // size of the rows, which stay in memory until the piece ends
}

// localPace is for a checkpoint in a folder. remotePace is for one in a bucket, where each
// object costs a request.
var (
	localPace  = Pace{Results: 1000, Every: time.Second, Bytes: 8 << 20}
	remotePace = Pace{Results: 5000, Every: 10 * time.Second, Bytes: 32 << 20}
)

// Checkpoint holds what runs have read of a form. Several goroutines may use it
// at once.
type Checkpoint struct {
	Pace  Pace
	Place string           // path or address of the checkpoint, for people
	Mem   memory.Allocator // allocates batches that are read or written; nil is Arrow's default

	state  State
	prefix string     // prefix of the names of the checkpoint's objects; it ends in a slash
	lease  load.Lease // nil where the checkpoint is only looked at
	run    string     // part of the names of the pieces that this run writes
	seen   []byte     // the header, as this run found or wrote it

	foreign bool // set once another run was seen to have written the header

	buffers sync.Pool // holds *bytes.Buffer, for the rows of pieces that are written or read back

	next  atomic.Int64 // number of the next piece
	begun atomic.Bool  // set if there is a header, so that the next run may take pieces over
}

// Header says to which run and form a checkpoint belongs, and when another run
// may take over its pieces.
type Header struct {
	Version    int       `json:"version"`
	RunID      string    `json:"run_id"` // id of the last run that wrote the header
	OpenedAt   time.Time `json:"opened_at"`
	Pipeline   string    `json:"pipeline"`
	Form       string    `json:"form"`
	Definition string    `json:"definition"` // path of the definition, "" for an export
	// Fingerprint is equal for definitions that read the same rows.
	Fingerprint string `json:"fingerprint"`
	Full        bool   `json:"full,omitempty"` // the run was asked to replace everything
	// Trusted means that a page with fewer results than usual was taken as the
	// last of its window. What was read must then be compared with counts.
	Trusted bool `json:"trusted,omitempty"`
	// Runs are the ids of the runs whose pieces belong to the checkpoint: the run of RunID and
	// those whose pieces it took over. A piece of another run was written late by a process
	// that had lost its lease.
	Runs  []string `json:"runs"`
	Bases []Base   `json:"bases"`
	// Inferred are the first columns of the rows if no schema declares them.
	// Headings are the labels from which these columns got their names.
	Inferred []load.Column  `json:"inferred,omitempty"`
	Headings []page.Heading `json:"headings,omitempty"`
	// Changes says up to when changes were known before the first piece was read;
	// nil if the service could not be asked.
	Changes *load.Changes `json:"changes,omitempty"`
	// Counts are the service's counts from when the windows were planned.
	Counts []Count `json:"counts,omitempty"`
}

// Base says which version of its manifest an output began a run with.
type Base struct {
	Path    string `json:"path"`
	Version string `json:"version"` // version of the output's manifest
	RunID   string `json:"run_id"`  // id of the run that wrote the manifest; "" if there was none
}

// Count is the number of results that the service counted in a span of time.
type Count struct {
	Window load.Range `json:"window"`
	N      int64      `json:"n"`
	At     time.Time  `json:"at"`
}

// headerVersion is the version of the header and the records. Other versions
// are not read.
const headerVersion = 1

// Begin writes the header of the checkpoint in place of the header that this run found or
// wrote. Without a header no other run takes over the pieces. The error wraps load.ErrConflict
// if another run has written the header since.
func (c *Checkpoint) Begin(ctx context.Context, h Header) error {
	h.Version = headerVersion
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	data = seal(data)
	err = c.change(ctx, func() error {
		there, version, err := c.state.Get(ctx, c.prefix+headerName)
		switch {
		case err != nil && !errors.Is(err, load.ErrNotExist):
			return err
		case !bytes.Equal(there, c.seen) && !bytes.Equal(there, data): // the header equals data if an earlier write succeeded and its answer was lost
			c.foreign = true
			return c.taken()
		}
		return c.state.Put(ctx, c.prefix+headerName, data, version)
	})
	if err != nil {
		return err
	}
	c.seen = data
	c.begun.Store(true)
	return nil
}

// Seen returns the Seen statistics of a piece's rows, by the source of each column. It reads
// them from the piece's record.
func (c *Checkpoint) Seen(ctx context.Context, p Piece) (map[schemas.Source]transform.Seen, error) {
	r, err := c.record(ctx, p)
	return r.Stats.Seen, err
}

func (c *Checkpoint) record(ctx context.Context, p Piece) (r record, err error) {
	data, err := c.get(ctx, p.object(recordSuffix))
	if err != nil {
		return r, err
	}
	if data, err = unseal(data); err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return r, nil
}

// header reads the header. The error wraps load.ErrNotExist if there is none.
func (c *Checkpoint) header(ctx context.Context) (h Header, err error) {
	if c.seen, err = c.get(ctx, headerName); err != nil {
		return h, err
	}
	data, err := unseal(c.seen)
	if err == nil {
		err = json.Unmarshal(data, &h)
	}
	if err != nil {
		return h, fmt.Errorf("it is damaged (%w)", err)
	}
	if h.Version != headerVersion {
		return h, fmt.Errorf("another version of formetl wrote it (its format is %d; this one reads %d)", h.Version, headerVersion)
	}
	return h, nil
}

// Rows calls visit with each record batch of a piece, in order. A batch is
// valid only during the call.
func (c *Checkpoint) Rows(ctx context.Context, p Piece, visit func(arrow.RecordBatch) error) error {
	if len(p.streams) == 0 {
		return nil
	}
	buffer := c.buffer()
	defer c.buffers.Put(buffer)
	if err := c.rows(ctx, p, buffer); err != nil {
		return err
	}
	data := buffer.Bytes()
	for _, s := range p.streams {
		if err := c.eachBatch(data[:s.Bytes], visit); err != nil {
			return err
		}
		data = data[s.Bytes:]
	}
	return nil
}

// rows reads the Arrow streams of a piece and verifies their checksums. It does not Get the object,
// because to know the version of a large object takes longer than to read it.
func (c *Checkpoint) rows(ctx context.Context, p Piece, into *bytes.Buffer) error {
	name := p.object(rowsSuffix)
	err := c.state.Try(ctx, func() error {
		object, err := c.state.Open(ctx, c.prefix+name)
		if err != nil {
			return err
		}
		defer func() { _ = object.Close() }() // it is only read
		into.Reset()
		_, err = into.ReadFrom(object)
		return err
	})
	if errors.Is(err, load.ErrNotExist) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	rest := into.Bytes()
	for _, s := range p.streams {
		if s.Bytes < 0 || s.Bytes > int64(len(rest)) || crc32.Checksum(rest[:s.Bytes], castagnoli) != s.CRC {
			return fmt.Errorf("%s: %w", name, ErrDamaged)
		}
		rest = rest[s.Bytes:]
	}
	return nil
}

func (c *Checkpoint) eachBatch(data []byte, visit func(arrow.RecordBatch) error) error {
	r, err := ipc.NewReader(bytes.NewReader(data), ipc.WithAllocator(cmp.Or(c.Mem, memory.DefaultAllocator)))
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

// Forget removes pieces from the checkpoint. It removes records first, so that no record lacks
// its rows.
func (c *Checkpoint) Forget(ctx context.Context, pieces ...Piece) error {
	for _, suffix := range []string{recordSuffix, rowsSuffix} {
		for _, p := range pieces {
			if suffix == rowsSuffix && len(p.streams) == 0 {
				continue
			}
			if err := c.remove(ctx, p.object(suffix)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Clear removes all objects of the checkpoint. It removes the header first, so that no run
// takes over a part of the rest.
func (c *Checkpoint) Clear(ctx context.Context) error {
	names, err := c.list(ctx)
	if err != nil {
		return err
	}
	if i := slices.Index(names, headerName); i > 0 {
		names[0], names[i] = names[i], names[0]
	}
	for _, name := range names {
		if err := c.remove(ctx, name); err != nil {
			return err
		}
	}
	c.seen = nil
	c.begun.Store(false)
	return nil
}

// Close ends the run's use of the checkpoint, and gives its lease back. If keep is true, a
// checkpoint with a header stays for the next run. Otherwise everything is removed.
func (c *Checkpoint) Close(ctx context.Context, keep bool) error {
	if c == nil {
		return nil
	}
	var err error
	if !keep || !c.Begun() {
		err = c.Clear(ctx)
	}
	return errors.Join(err, c.state.Fail(c.lease.Release(ctx)))
}

// Begun tells whether the checkpoint has a header, so that the next run may take over pieces.
func (c *Checkpoint) Begun() bool { return c != nil && c.begun.Load() }
