package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/transform"
)

// places runs a test with a checkpoint in a folder, and one in a folder that is taken
// for a bucket. open gives the checkpoint as another run finds it.
func places(t *testing.T, test func(t *testing.T, open func() *Checkpoint)) {
	t.Run("local", func(t *testing.T) {
		state := folderState(t.TempDir())
		test(t, func() *Checkpoint { return opened(t, state) })
	})
	t.Run("remote", func(t *testing.T) {
		state := remoteState(t)
		test(t, func() *Checkpoint { return opened(t, state) })
	})
}

// holder is the run of these tests, and testKey the key of its form's checkpoint.
var (
	holder  = load.Holder{RunID: "run1", Pipeline: "p"}
	testKey = Key("p", "f", []string{"lake/"})
)

func folderState(folder string) State {
	d, err := local.NewState(folder)
	if err != nil {
		panic(err)
	}
	return NewState(d, folder)
}

// remoteState is a folder that is taken for a bucket.
func remoteState(t testing.TB) State {
	s := folderState(t.TempDir())
	s.Place = "s3://bucket/state/"
	return s
}

// opened opens the checkpoint of the tests' form.
func opened(t testing.TB, s State) *Checkpoint {
	t.Helper()
	c, err := Open(t.Context(), s, testKey, 1, holder)
	if err != nil {
		t.Fatal(err)
	}
	c.Mem = loadtest.Overwriting{}
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// at reads a time such as "01-02" or "01-02 15:04".
func at(t testing.TB, s string) time.Time {
	t.Helper()
	if s == "" {
		return time.Time{}
	}
	layout := "2006-01-02 15:04"
	parsed, err := time.Parse(layout[:5+len(s)], "2026-"+s)
	must(t, err)
	return parsed
}

// window reads a window such as "01-02/01-03"; a bound may be empty.
func window(t testing.TB, s string) extract.Window {
	t.Helper()
	from, to, _ := strings.Cut(s, "/")
	return extract.Window{From: at(t, from), To: at(t, to)}
}

// fields are the columns of batches: an id, a text, a list, and so many others.
func fields(added int) *arrow.Schema {
	all := append(
		make([]arrow.Field, 0, 3+added),
		arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		arrow.Field{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "list", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	)
	for i := range added {
		all = append(all, arrow.Field{Name: fmt.Sprint("added", i), Type: arrow.BinaryTypes.String, Nullable: true})
	}
	return arrow.NewSchema(all, nil)
}

// batch has a row for each id. Each third text is null, and so are some lists.
func batch(added int, ids ...int64) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, fields(added))
	defer b.Release()
	for _, id := range ids {
		b.Field(0).(*array.Int64Builder).Append(id)
		if text := b.Field(1).(*array.StringBuilder); id%3 == 0 {
			text.AppendNull()
		} else {
			text.Append(fmt.Sprint("text ", id))
		}
		list := b.Field(2).(*array.ListBuilder)
		if list.Append(id%5 != 0); id%5 != 0 {
			for i := range id % 4 {
				list.ValueBuilder().(*array.StringBuilder).Append(fmt.Sprint(id, "-", i))
			}
		}
		for i := range added {
			b.Field(3 + i).(*array.StringBuilder).Append(fmt.Sprint("added ", id))
		}
	}
	return b.NewRecordBatch()
}

// rowText is what a batch of an id holds, as text.
func rowText(added int, id int64) string {
	b := batch(added, id)
	defer b.Release()
	return rowsOf(b)[0]
}

// rowsOf are the rows of a batch as texts.
func rowsOf(b arrow.RecordBatch) []string {
	texts := make([]string, b.NumRows())
	for i := range texts {
		for _, column := range b.Columns() {
			texts[i] += column.ValueStr(i) + "\t"
		}
	}
	return texts
}

// idsOf are the ids of a batch.
func idsOf(b arrow.RecordBatch) []int64 {
	return slices.Clone(b.Column(0).(*array.Int64).Int64Values())
}

// draft is a piece to be written.
type draft struct {
	window         string
	after, through int64
	ids            []int64
	rejects        []int64
	passing        bool
	readAt         string // "02-01 12:00" where it is empty
	batch          int    // rows of a batch; 0: all of them
	grows          bool   // each batch has a column more than the one before
}

// write writes pieces.
func write(t testing.TB, c *Checkpoint, drafts ...draft) []Piece {
	t.Helper()
	pieces := make([]Piece, 0, len(drafts))
	for _, d := range drafts {
		if d.readAt == "" {
			d.readAt = "02-01 12:00"
		}
		p := Piece{
			Window: window(t, d.window), After: d.after, Through: d.through, Passing: d.passing, ReadAt: at(t, d.readAt), Run: "run1",
			IDs: idset.Of(slices.Concat(d.ids, d.rejects)...), Replaced: int64(len(d.ids)),
			Stats: transform.Stats{Rows: int64(len(d.ids)), Rejected: int64(len(d.rejects))},
		}
		for _, id := range d.rejects {
			p.Rejects = append(p.Rejects, transform.Reject{ResultID: id, Column: "text", Raw: "x", Reason: "no"})
		}
		w := c.Write()
		added := 0
		size := d.batch
		if size == 0 {
			size = max(1, len(d.ids))
		}
		for ids := range slices.Chunk(d.ids, size) {
			b := batch(added, ids...)
			must(t, w.Add(b))
			b.Release()
			if d.grows {
				added++
			}
		}
		written, err := w.End(t.Context(), p)
		must(t, err)
		pieces = append(pieces, written)
	}
	return pieces
}

// begin writes a header.
func begin(t testing.TB, c *Checkpoint) {
	t.Helper()
	must(t, c.Begin(t.Context(), Header{RunID: "run1", Runs: []string{"run1"}, OpenedAt: at(t, "02-01 12:00"), Pipeline: "p", Form: "f", Definition: "/p.yaml", Fingerprint: "x"}))
}

// found finds what a run left; every piece is usable.
func found(t testing.TB, c *Checkpoint) *Inherited {
	t.Helper()
	i, err := c.Found(t.Context())
	must(t, err)
	if i == nil {
		t.Fatal("nothing is found")
	}
	must(t, c.Verify(t.Context(), i))
	i.Usable(at(t, "02-02 12:00"), 0, func(now time.Time) time.Time { return now })
	return i
}

// shown writes chains as text: their windows and the bounds of their pieces.
func shown(chains []Chain) string {
	all := make([]string, 0, len(chains))
	day := func(w time.Time) string {
		if w.IsZero() {
			return ".."
		}
		return w.Format("01-02")
	}
	for _, c := range chains {
		text := day(c.Window.From) + "/" + day(c.Window.To)
		for _, p := range c.Pieces {
			text += fmt.Sprintf(" (%d,%d]", p.After, p.Through)
		}
		all = append(all, strings.ReplaceAll(text, fmt.Sprint(Last), "end"))
	}
	return strings.Join(all, "; ")
}

// spy is a state that tells what was done to a checkpoint, and fails where it is told to.
type spy struct {
	load.Destination
	prefix string
	done   []string
	fail   func(op, name string) error
}

// spyOn has a spy see what is done to a checkpoint from now on. fail may be nil.
func spyOn(c *Checkpoint, fail func(op, name string) error) *spy {
	s := &spy{Destination: c.state.Destination, prefix: c.prefix, fail: fail}
	c.state.Destination = s
	return s
}

func (s *spy) Get(ctx context.Context, name string) ([]byte, string, error) {
	if err := s.failed("get", name); err != nil {
		return nil, "", err
	}
	return s.Destination.Get(ctx, name)
}

func (s *spy) List(ctx context.Context, prefix string) ([]load.Object, error) {
	if err := s.failed("list", prefix); err != nil {
		return nil, err
	}
	return s.Destination.List(ctx, prefix)
}

func (s *spy) Put(ctx context.Context, name string, data []byte, version string) error {
	if err := s.note("put", name); err != nil {
		return err
	}
	return s.Destination.Put(ctx, name, data, version)
}

func (s *spy) Delete(ctx context.Context, name string) error {
	if err := s.note("remove", name); err != nil {
		return err
	}
	return s.Destination.Delete(ctx, name)
}

func (s *spy) note(op, name string) error {
	s.done = append(s.done, op+" "+strings.TrimPrefix(name, s.prefix))
	return s.failed(op, name)
}

func (s *spy) failed(op, name string) error {
	if s.fail == nil {
		return nil
	}
	return s.fail(op, strings.TrimPrefix(name, s.prefix))
}
