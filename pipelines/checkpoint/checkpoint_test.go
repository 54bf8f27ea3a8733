package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

func source(t *testing.T, s string) schemas.Source {
	t.Helper()
	from, err := schemas.ParseSource(s)
	must(t, err)
	return from
}

// TestRoundTrip: all that a header and a piece hold is read by another run as it
// was written.
func TestRoundTrip(t *testing.T) {
	places(t, func(t *testing.T, open func() *Checkpoint) {
		c := open()
		h := Header{
			RunID: "run1", Runs: []string{"run1"}, OpenedAt: at(t, "02-01 12:00"), Pipeline: "p", Form: "form1", Definition: "/p.yaml", Fingerprint: "f", Full: true, Trusted: true,
			Bases: []Base{{Path: "/out/", Version: "v1"}, {Path: "/f.csv"}}, Inferred: []load.Column{{Name: "a", Type: "list<string>", From: "item:7", Label: "A"}},
			Headings: []page.Heading{{ID: "7", Label: "A"}},
			Counts:   []Count{{Window: load.Range{From: load.Wall(at(t, "01-01")), To: load.Wall(at(t, "01-02"))}, N: 7, At: at(t, "02-01 12:00")}},
		}
		must(t, c.Begin(t.Context(), h))
		h.Version = headerVersion
		list, err := schemas.ParseType("list<string>")
		must(t, err)
		seen := map[schemas.Source]transform.Seen{
			source(t, "item:7"):           {Filled: 2, ItemType: "checkbox", Index: 3, Choices: map[string]int64{"": 1, "ä|b": 2}},
			source(t, "meta:date_finish"): {Filled: 1, Many: true},
		}
		want := Piece{
			Window: window(t, "01-01/01-02 12:00"), After: 7, Through: 99, ReadAt: at(t, "02-01 12:34"), Run: "run1",
			IDs: idset.Of(8, 9, 99), Replaced: 5,
			Rejects: []transform.Reject{{ResultID: 9, Column: "n", Raw: "\x00é", Reason: "no number"}},
			Stats: transform.Stats{
				Rows: 2, Rejected: 1, Rejects: map[transform.Fault]int64{{Column: "n", Reason: "no number"}: 1},
				Nulled: map[transform.Fault]int64{{Column: "m", Reason: "r"}: 3, {Column: "m", Reason: "s"}: 1},
				Joined: map[string]int64{"j": 2}, Shifted: map[string]int64{"s": 1}, Ignored: map[schemas.Source]int64{source(t, "item:8"): 4},
				Added: []schemas.Column{{Name: "b", From: source(t, "item:9"), Type: list, Label: "B", Inferred: true}}, Seen: seen,
			},
		}
		w := c.Write()
		for _, id := range []int64{8, 99} {
			b := batch(0, id)
			must(t, w.Add(b))
			b.Release()
		}
		written, err := w.End(t.Context(), want)
		must(t, err)
		must(t, c.Close(t.Context(), true))

		again := open()
		i, err := again.Found(t.Context())
		must(t, err)
		if !reflect.DeepEqual(i.Header, h) {
			t.Errorf("the header is %+v, want %+v", i.Header, h)
		}
		if len(i.all) != 1 || len(i.Faults) > 0 {
			t.Fatalf("pieces %v, faults %v", i.all, i.Faults)
		}
		got := i.all[0]
		if !got.IDs.Equal(want.IDs) || !got.RowIDs().Equal(idset.Of(8, 99)) || got.Results() != 3 {
			t.Errorf("ids %v, of rows %v", got.IDs, got.RowIDs())
		}
		if s, err := again.Seen(t.Context(), got); err != nil || !reflect.DeepEqual(s, seen) {
			t.Errorf("seen %+v, %v", s, err)
		}
		var rows []string
		must(t, again.Rows(t.Context(), got, func(b arrow.RecordBatch) error {
			rows = append(rows, rowsOf(b)...)
			return nil
		}))
		if !slices.Equal(rows, []string{rowText(0, 8), rowText(0, 99)}) {
			t.Errorf("rows %q", rows)
		}
		got.IDs, want.IDs, want.Stats.Seen = nil, nil, nil
		want.number, want.by, want.streams = written.number, written.by, written.streams
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the piece is\n%+v, want\n%+v", got, want)
		}
		must(t, again.Close(t.Context(), false))
	})
}

// TestNothingFound: a new checkpoint holds nothing, and one without a header
// nothing of use.
func TestNothingFound(t *testing.T) {
	places(t, func(t *testing.T, open func() *Checkpoint) {
		c := open()
		if i, err := c.Found(t.Context()); i != nil || err != nil || c.Begun() {
			t.Errorf("found %+v, %v", i, err)
		}
		write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []int64{1}})
		if i, err := c.Found(t.Context()); i == nil || !errors.Is(err, ErrNoHeader) || i.RunID != "" || c.Begun() {
			t.Errorf("found %+v, %v", i, err)
		}
		must(t, c.Close(t.Context(), true))
		c = open()
		if i, err := c.Found(t.Context()); i != nil || err != nil {
			t.Errorf("what has no header was kept: %+v, %v", i, err)
		}
		must(t, c.Close(t.Context(), true))
	})
}

// TestNumbersFollow: pieces of the next run do not replace those that it found,
// whole or not, and passing ones are of use to their run alone.
func TestNumbersFollow(t *testing.T) {
	places(t, func(t *testing.T, open func() *Checkpoint) {
		c := open()
		begin(t, c)
		write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []int64{1}}, draft{window: "/", after: First, through: Last, ids: []int64{5}, passing: true})
		must(t, c.put(t.Context(), Piece{number: 7, by: c.run}.object(rowsSuffix), []byte("torn")))
		must(t, c.Close(t.Context(), true))

		c = open()
		if got := shown(found(t, c).Chains); got != "01-01/01-02 (-1,end]" || !c.Begun() {
			t.Errorf("found %s", got)
		}
		write(t, c, draft{window: "01-02/01-03", after: First, through: Last, ids: []int64{2}})
		if got := shown(found(t, c).Chains); got != "01-01/01-02 (-1,end]; 01-02/01-03 (-1,end]" {
			t.Errorf("found %s", got)
		}
		names, err := c.list(t.Context())
		must(t, err)
		slices.Sort(names)
		if got := strings.ReplaceAll(strings.Join(names, " "), "-"+c.run, ""); got != "0000000-record 0000000-rows 0000001-record 0000001-rows 0000007-rows 0000008-record 0000008-rows header" {
			t.Errorf("it holds %s", got)
		}
		must(t, c.Close(t.Context(), false))
		if i, err := open().Found(t.Context()); i != nil || err != nil {
			t.Errorf("found %+v, %v", i, err)
		}
	})
}

// TestOrders: rows are written before their record, and removed after it; the
// header goes first, so that nobody takes over a part of what is removed.
func TestOrders(t *testing.T) {
	places(t, func(t *testing.T, open func() *Checkpoint) {
		c := open()
		s := spyOn(c, nil)
		check := func(what, want string) {
			t.Helper()
			if got := strings.Join(s.done, ", "); got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
			s.done = nil
		}
		begin(t, c)
		pieces := write(t, c, draft{window: "01-01/01-02", after: First, through: 5, ids: []int64{1}}, draft{window: "01-01/01-02", after: 5, through: Last})
		check("writing", "put header, put 0000000-34e9aede-rows, put 0000000-34e9aede-record, put 0000001-34e9aede-record")
		must(t, c.Forget(t.Context(), pieces...))
		check("forgetting", "remove 0000000-34e9aede-record, remove 0000001-34e9aede-record, remove 0000000-34e9aede-rows")
		must(t, c.Forget(t.Context(), pieces...)) // again
		s.done = nil
		pieces = write(t, c, draft{window: "01-01/01-02", after: First, through: 5, ids: []int64{1}}, draft{window: "01-02/01-03", after: First, through: Last, ids: []int64{2}})
		s.done = nil
		must(t, c.Keep(t.Context(), []Chain{{Pieces: pieces[1:]}}))
		if slices.Sort(s.done); !slices.Equal(s.done, []string{"remove 0000002-34e9aede-record", "remove 0000002-34e9aede-rows"}) {
			t.Errorf("keeping one: %v", s.done)
		}
		s.done = nil
		must(t, c.Clear(t.Context()))
		if len(s.done) != 3 || s.done[0] != "remove header" || c.Begun() {
			t.Errorf("clearing: %v", s.done)
		}
		must(t, c.Close(t.Context(), true))
	})
}

// TestWriteFails: a piece whose rows or record cannot be written is none, and the
// checkpoint is of use without it.
func TestWriteFails(t *testing.T) {
	broken := errors.New("no space")
	places(t, func(t *testing.T, open func() *Checkpoint) {
		for _, suffix := range []string{rowsSuffix, recordSuffix} {
			c := open()
			begin(t, c)
			write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []int64{1}})
			spyOn(c, func(op, name string) error {
				if op == "put" && strings.HasSuffix(name, suffix) {
					return broken
				}
				return nil
			})
			w := c.Write()
			b := batch(0, 2)
			must(t, w.Add(b))
			b.Release()
			p := Piece{Window: window(t, "01-02/01-03"), After: First, Through: Last, IDs: idset.Of(2), Stats: transform.Stats{Rows: 1}}
			if _, err := w.End(t.Context(), p); !errors.Is(err, broken) {
				t.Errorf("error %v", err)
			}
			must(t, c.Close(t.Context(), true))
			c = open()
			if got := shown(found(t, c).Chains); got != "01-01/01-02 (-1,end]" {
				t.Errorf("found %s", got)
			}
			must(t, c.Close(t.Context(), false))
		}
	})
}

// TestClearFails: what cannot be removed is told, and nothing is taken over of
// what is half removed.
func TestClearFails(t *testing.T) {
	broken := errors.New("read only")
	places(t, func(t *testing.T, open func() *Checkpoint) {
		c := open()
		begin(t, c)
		write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []int64{1}})
		spyOn(c, func(_, name string) error {
			if strings.HasSuffix(name, rowsSuffix) {
				return broken
			}
			return nil
		})
		if err := c.Close(t.Context(), false); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
		c = open()
		if i, err := c.Found(t.Context()); i != nil && (i.RunID != "" || err == nil) {
			t.Errorf("found %+v, %v", i, err)
		}
		must(t, c.Close(t.Context(), false))
	})
}

// TestStoreThatDoesNotAnswer says nothing about what lies there, and neither does
// a run that is stopped: nothing is found, and nothing is discarded for it.
func TestStoreThatDoesNotAnswer(t *testing.T) {
	broken := errors.New("no answer")
	places(t, func(t *testing.T, open func() *Checkpoint) {
		c := open()
		begin(t, c)
		write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []int64{1}})
		must(t, c.Close(t.Context(), true))
		for _, fails := range []string{"list", "get"} {
			failing := func() *Checkpoint {
				c := open()
				spyOn(c, func(op, _ string) error {
					if op == fails {
						return broken
					}
					return nil
				})
				return c
			}
			c := failing()
			if i, err := c.Found(t.Context()); i != nil || !errors.Is(err, broken) || !c.Begun() {
				t.Errorf("%s fails: found %+v, %v", fails, i, err)
			}
			must(t, c.Close(t.Context(), true)) // it stays
			c = open()
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(broken)
			if i, err := c.Found(ctx); i != nil || err == nil {
				t.Errorf("stopped: found %+v, %v", i, err)
			}
			if got := shown(found(t, c).Chains); got != "01-01/01-02 (-1,end]" {
				t.Errorf("then it holds %s", got)
			}
			must(t, c.Close(t.Context(), true))
		}
	})
}

// TestDamage: whatever byte of a record, a header or the rows is another one, or
// missing, nothing is read that was not written. A damaged piece costs itself
// alone.
func TestDamage(t *testing.T) {
	places(t, func(t *testing.T, open func() *Checkpoint) {
		c := open()
		begin(t, c)
		write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []int64{1, 2, 7}, rejects: []int64{4}}, draft{window: "01-02/01-03", after: First, through: Last, ids: []int64{3}})
		for _, name := range []string{"0000000-34e9aede-record", "0000000-34e9aede-rows", headerName} {
			data, err := c.get(t.Context(), name)
			must(t, err)
			check := func(what string, damaged []byte) {
				t.Helper()
				must(t, c.put(t.Context(), name, damaged))
				i, err := c.Found(t.Context())
				if name == headerName {
					if err == nil {
						t.Errorf("%s with %s is taken", name, what)
					}
					return
				}
				if err == nil {
					err = c.Verify(t.Context(), i)
				}
				if err != nil || len(i.all) != 1 || len(i.Faults) != 1 || !strings.Contains(i.Faults[0].Error(), "0000000-34e9aede-record") {
					t.Errorf("%s with %s: %d pieces, faults %v, %v", name, what, len(i.all), i.Faults, err)
				}
			}
			step := 1
			if name == "0000000-34e9aede-rows" {
				step = 7
			}
			for n := 0; n < len(data); n += step {
				changed := slices.Clone(data)
				changed[n] ^= 1 << (n % 8)
				check(fmt.Sprint("byte ", n, " changed"), changed)
				if n%5 == 0 {
					check(fmt.Sprint(n, " bytes alone"), data[:n])
				}
			}
			must(t, c.put(t.Context(), name, data))
		}
		must(t, c.put(t.Context(), "0000000-34e9aede-record", seal([]byte("null"))))
		if i, err := c.Found(t.Context()); err != nil || len(i.all) != 1 || len(i.Faults) != 1 {
			t.Errorf("with an empty record %+v, %v", i, err)
		}
		must(t, c.Close(t.Context(), false))
	})
}

// TestRecordOfNoUse: a record that is whole and does not agree with itself, or with its rows, is
// no piece. The others are.
func TestRecordOfNoUse(t *testing.T) {
	c := opened(t, remoteState(t))
	begin(t, c)
	write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []int64{1, 2}}, draft{window: "01-02/01-03", after: First, through: Last, ids: []int64{3}})
	data, err := c.get(t.Context(), "0000000-34e9aede-record")
	must(t, err)
	body, err := unseal(data)
	must(t, err)
	stats := func(r map[string]any) map[string]any { return r["stats"].(map[string]any) }
	stream := func(r map[string]any) map[string]any { return r["streams"].([]any)[0].(map[string]any) }
	for name, damage := range map[string]func(r map[string]any){
		"no ids":             func(r map[string]any) { delete(r, "ids") },
		"ids of no kind":     func(r map[string]any) { r["ids"] = "AAAA" },
		"not from the first": func(r map[string]any) { r["after"] = 1 },
		"not to the end":     func(r map[string]any) { r["through"] = 0 },
		"fewer rows":         func(r map[string]any) { stats(r)["rows"] = 1 },
		"more rows":          func(r map[string]any) { stats(r)["rows"] = 3 },
		"a column of no type": func(r map[string]any) {
			stats(r)["added"] = []map[string]string{{"name": "a", "type": "colour", "from": "item:1"}}
		},
		"no streams":        func(r map[string]any) { delete(r, "streams") },
		"a longer stream":   func(r map[string]any) { stream(r)["bytes"] = 1 << 40 },
		"a negative stream": func(r map[string]any) { stream(r)["bytes"] = -1 },
		"another kind":      func(r map[string]any) { r["streams"] = "none" },
	} {
		var r map[string]any
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		must(t, decoder.Decode(&r))
		damage(r)
		changed, err := json.Marshal(r)
		must(t, err)
		must(t, c.put(t.Context(), "0000000-34e9aede-record", seal(changed)))
		if i := found(t, c); shown(i.Chains) != "01-02/01-03 (-1,end]" || len(i.Faults) != 1 {
			t.Errorf("%s: found %s, faults %v", name, shown(i.Chains), i.Faults)
		}
	}
}

// TestUnfit tells why a run takes nothing over.
func TestUnfit(t *testing.T) {
	now := at(t, "02-01 13:00")
	left := Header{RunID: "run1", Fingerprint: "f", OpenedAt: at(t, "02-01 12:00"), Bases: []Base{{Path: "/out/", Version: "v1"}}}
	with := func(columns ...load.Column) Header {
		h := left
		h.Inferred = columns
		return h
	}
	a := load.Column{Name: "a", Type: "string", From: "item:1"}
	for _, c := range []struct {
		header Header
		next   Header
		why    string
	}{
		{left, Header{OpenedAt: now, Fingerprint: "f", Bases: []Base{{Path: "/out/", Version: "v1"}}}, ""},
		{left, Header{OpenedAt: now, Fingerprint: "f", Bases: []Base{{Path: "/out/", Version: "v2", RunID: "run1"}}}, ""},
		{left, Header{OpenedAt: now, Fingerprint: "g"}, "the definition has changed since that run"},
		{left, Header{OpenedAt: now.Add(KeepFor), Fingerprint: "f"}, "it is older than 7 days"},
		{left, Header{OpenedAt: now, Fingerprint: "f", Full: true}, "reads everything again"},
		{Header{RunID: "run1", Fingerprint: "f", OpenedAt: left.OpenedAt, Full: true, Bases: left.Bases}, Header{OpenedAt: now, Fingerprint: "f", Bases: left.Bases}, "that run had --full, and this one has not"},
		{left, Header{OpenedAt: now, Fingerprint: "f", Bases: []Base{{Path: "/out/", Version: "v2"}}}, "another run has written /out/ since that run"},
		{with(load.Column{Name: "a", Type: "colour", From: "item:1"}), Header{OpenedAt: now, Fingerprint: "f"}, "column 1: "},
		{with(load.Column{Name: "a", Type: "string", From: "nowhere"}), Header{OpenedAt: now, Fingerprint: "f"}, "column 1: "},
		{with(a, load.Column{Name: "a", Type: "string", From: "item:2"}), Header{OpenedAt: now, Fingerprint: "f"}, "a"},
		{with(a), Header{OpenedAt: now, Fingerprint: "f"}, ""},
	} {
		err := (&Inherited{Header: c.header}).Unfit(c.next)
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v, want %q", c.next, err, c.why)
		}
	}
}

// TestVersions: a header of another version is refused with both named.
func TestVersions(t *testing.T) {
	places(t, func(t *testing.T, open func() *Checkpoint) {
		c := open()
		for _, version := range []int{0, headerVersion + 1} {
			must(t, c.put(t.Context(), headerName, seal(fmt.Appendf(nil, `{"version":%d,"run_id":"r"}`, version))))
			i, err := c.Found(t.Context())
			if i == nil || err == nil || !strings.Contains(err.Error(), fmt.Sprintf("(its format is %d; this one reads %d)", version, headerVersion)) {
				t.Errorf("found %+v, %v", i, err)
			}
		}
		must(t, c.Close(t.Context(), false))
	})
}

// TestRowsAreLost: rows that are gone by the time that they are needed are told.
func TestRowsAreLost(t *testing.T) {
	places(t, func(t *testing.T, open func() *Checkpoint) {
		c := open()
		begin(t, c)
		p := write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []int64{1, 2}})[0]
		must(t, c.remove(t.Context(), p.object(rowsSuffix)))
		nothing := func(arrow.RecordBatch) error { return errors.New("a batch") }
		if err := c.Rows(t.Context(), p, nothing); !errors.Is(err, load.ErrNotExist) {
			t.Errorf("error %v", err)
		}
		if err := c.RowsOf(t.Context(), []Chain{{Pieces: []Piece{p}}, {}}, nothing); !errors.Is(err, load.ErrNotExist) {
			t.Errorf("error %v", err)
		}
		must(t, c.Close(t.Context(), false))
	})
}

// TestKey tells pipelines, forms and outputs apart.
func TestKey(t *testing.T) {
	seen := map[string]bool{}
	for _, args := range []struct {
		pipeline, form string
		paths          []string
	}{
		{"p", "f", []string{"a", "b"}},
		{"p", "f", []string{"b", "a"}},
		{"p", "f", []string{"a b"}},
		{"p", "f", []string{`a" "b`}},
		{"p", "f", nil},
		{"pf", "", nil},
		{"p", "g", []string{"a", "b"}},
		{"q", "f", []string{"a", "b"}},
		{`p" "f`, "", nil},
	} {
		key := Key(args.pipeline, args.form, args.paths)
		if seen[key] || len(key) != 25 || key != Key(args.pipeline, args.form, args.paths) {
			t.Errorf("%+v: %s", args, key)
		}
		seen[key] = true
	}
}

// TestPlaceForPeople names where the checkpoint lies.
func TestPlaceForPeople(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []*Checkpoint{opened(t, folderState(folder)), opened(t, remoteState(t))} {
		if want := c.state.Place; c.Place != strings.TrimSuffix(want, "/")+"/checkpoint/"+testKey {
			t.Error(c.Place)
		}
		must(t, c.Close(t.Context(), false))
	}
	var none *Checkpoint
	if none.Begun() || none.Close(t.Context(), true) != nil {
		t.Error("no checkpoint is none that was begun")
	}
}

// losable is a lease that a test loses.
type losable struct{ lost chan struct{} }

func (l losable) Lost() <-chan struct{}         { return l.lost }
func (l losable) Release(context.Context) error { return nil }

// TestLostLease: a run that has lost the lease neither writes nor removes anything.
func TestLostLease(t *testing.T) {
	c := opened(t, remoteState(t))
	lease := losable{make(chan struct{})}
	c.lease = lease
	begin(t, c)
	close(lease.lost)
	if err := c.Begin(t.Context(), Header{RunID: "run1", Runs: []string{"run1"}}); !errors.Is(err, load.ErrConflict) {
		t.Errorf("begin: %v", err)
	}
	if err := c.Close(t.Context(), false); !errors.Is(err, load.ErrConflict) {
		t.Errorf("close: %v", err)
	}
	if found, err := c.Found(t.Context()); err != nil || found == nil || found.RunID != "run1" {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestLateWrites: a run whose lease another one took without its knowing neither replaces that
// one's header, nor its pieces.
func TestLateWrites(t *testing.T) {
	s := remoteState(t)
	late := opened(t, s)
	begin(t, late)
	must(t, late.lease.Release(t.Context()))
	late.lease = losable{}

	c, err := Open(t.Context(), s, testKey, 1, load.Holder{RunID: "run2"})
	must(t, err)
	found(t, c)
	must(t, c.Begin(t.Context(), Header{RunID: "run2", Runs: []string{"run1", "run2"}}))
	write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []int64{1}})
	write(t, late, draft{window: "01-02/01-03", after: First, through: Last, ids: []int64{2, 3}})
	if err := late.Begin(t.Context(), Header{RunID: "run1", Runs: []string{"run1"}}); !errors.Is(err, load.ErrConflict) {
		t.Errorf("begin: %v", err)
	}
	if err := late.Close(t.Context(), false); !errors.Is(err, load.ErrConflict) {
		t.Errorf("it clears another run's checkpoint: %v", err)
	}
	i := found(t, c)
	must(t, c.Verify(t.Context(), i))
	if got := shown(i.Chains); i.RunID != "run2" || !strings.HasPrefix(got, "01-01/01-02 (-1,end]") || len(i.Faults) > 0 {
		t.Errorf("%s of %s, %v", got, i.RunID, i.Faults)
	}
}

// absent is a bucket that cannot be reached until a time, and then loses the answer to a write.
type absent struct {
	load.Destination
	until time.Time
	loses bool
}

var errNoAnswer = &load.Error{Kind: load.ErrAway, Op: "reach", Path: "s3://bucket/state/", Err: errors.New("no answer")}

func (a *absent) Get(ctx context.Context, name string) ([]byte, string, error) {
	if time.Now().Before(a.until) {
		return nil, "", errNoAnswer
	}
	return a.Destination.Get(ctx, name)
}

func (a *absent) Put(ctx context.Context, name string, data []byte, version string) error {
	if time.Now().Before(a.until) {
		return errNoAnswer
	}
	err := a.Destination.Put(ctx, name, data, version)
	if a.loses {
		a.loses = false
		return errNoAnswer
	}
	return err
}

// TestBucketAway: what a bucket does not answer is asked again for a minute. A write whose answer was lost is no conflict.
func TestBucketAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := opened(t, remoteState(t))
		a := &absent{Destination: c.state.Destination, until: time.Now().Add(40 * time.Second), loses: true}
		c.state.Destination = a
		begin(t, c)
		began := time.Now()
		a.until = began.Add(time.Hour)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if _, err := c.get(t.Context(), headerName); !errors.As(err, new(*StateError)) {
					t.Errorf("error %v", err)
				}
			})
		}
		group.Wait()
		if took := time.Since(began); took < patience || took > patience+5*time.Second {
			t.Errorf("it took %s", took)
		}
		time.Sleep(2 * patience)
		a.until = time.Now().Add(30 * time.Second) // another outage
		if found(t, c).RunID != "run1" {
			t.Error("the header is lost")
		}
	})
}

// TestEmptyPieceThatIsOpen: a piece that was cut off behind the last page is followed by one
// without ids, which says that no result is expected any more.
func TestEmptyPieceThatIsOpen(t *testing.T) {
	c := opened(t, remoteState(t))
	begin(t, c)
	write(t, c, draft{window: "01-01/01-02", after: First, through: 7, ids: []int64{7}})
	_, err := c.Write().End(t.Context(), Piece{Window: window(t, "01-01/01-02"), After: 7, Through: 7, Open: true, ReadAt: at(t, "02-01 12:00"), Run: "run1", IDs: idset.Set{}})
	must(t, err)
	if i := found(t, c); len(i.Faults) > 0 || len(i.Chains) != 1 || !i.Chains[0].Ended() {
		t.Errorf("%+v, %v", i.Chains, i.Faults)
	}
}
