package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
)

// mostPlain bounds an object that is no rows. It is kept in memory and in one value.
const mostPlain = 64 << 20

// cleanupTime bounds how long the removal of what was staged may take after a stop.
const cleanupTime = 5 * time.Second

// stagedShape is what names of staged objects look like. They are part of a table's name.
var stagedShape = regexp.MustCompile(`^[a-z2-7]{26}$`)

// stagingTable returns the name of the table for the rows that a run stages with one header. All
// parts of a run share it, because a transaction holds a lock for each table that it drops,
// and a server has few thousand of them.
func stagingTable(t tables.Table, run string, line []byte) string {
	sum := sha256.Sum256(slices.Concat([]byte(t.Name+"\x00"+run+"\x00"), line))
	return "staged_" + hex.EncodeToString(sum[:13])
}

// Stage begins an object.
func (d *Destination) Stage(ctx context.Context, run, name string) (load.Upload, error) {
	if err := errors.Join(load.CheckObjectName(name), load.CheckRun(run)); err != nil {
		return nil, err
	}
	u := &upload{d: d, ctx: ctx, run: run, name: name, id: strings.ToLower(rand.Text()), sum: sha256.New()}
	err := d.change(ctx, "stage", name, func(s *session) error {
		made, err := s.Query(ctx, "INSERT INTO "+s.Table.Own("staged")+" (id, table_name, run_id, name) VALUES ($1, $2, $3, $4) RETURNING part", u.id, s.Table.Name, run, name)
		if err == nil {
			u.part = string(made[0][0])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return u, nil
}

// upload is an object that is being staged. It begins in memory. Once its first bytes say
// that they are rows, they go to the server as they come.
type upload struct {
	d     *Destination
	ctx   context.Context //nolint:containedctx // that of Stage bounds the COPY, which Write feeds
	run   string
	name  string
	id    string
	part  string // number of its rows in the staging table
	sum   hash.Hash
	bytes int64
	held  bytes.Buffer // what is not sent
	rows  *copying     // nil until the bytes are known to be rows
	ended bool
	plain bool // the bytes are no rows
}

// copying is a COPY under way.
type copying struct {
	to      *io.PipeWriter
	done    chan struct{}
	rows    int64
	failure error
}

// errEnded is returned by an upload that has ended.
var errEnded = errors.New("the upload has ended")

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	if u.ended {
		return 0, fmt.Errorf("cannot write to %s: %w", u.name, errEnded)
	}
	u.bytes += int64(len(p))
	u.sum.Write(p)
	if u.rows != nil {
		return u.send(p)
	}
	u.held.Write(p)
	if !u.plain {
		if err := u.decide(); err != nil {
			return 0, err
		}
	}
	if u.plain && u.held.Len() > mostPlain {
		return 0, &load.IOError{Op: "stage", Path: u.d.path(u.name), Hint: "this is a bug in formetl", Err: fmt.Errorf("an object that is no rows of a table has more than %d bytes", mostPlain)}
	}
	return len(p), nil
}

// decide finds out whether the bytes so far begin rows. If so it begins to send them.
func (u *upload) decide() error {
	b := u.held.Bytes()
	n := min(len(b), len(tables.HeaderMark))
	if string(b[:n]) != tables.HeaderMark[:n] {
		u.plain = true
		return nil
	}
	line := bytes.IndexByte(b, '\n')
	if line < 0 {
		return nil
	}
	h, err := tables.DecodeHeader(b[:line+1])
	if err != nil {
		u.plain = true
		return nil //nolint:nilerr // then they are no rows
	}
	if err := u.begin(bytes.Clone(b[:line+1]), h); err != nil {
		return err
	}
	rest := bytes.Clone(b[line+1:])
	u.held = bytes.Buffer{}
	_, err = u.send(rest)
	return err
}

// begin creates the staging table, if it is missing, and begins to copy. A staging table is
// not logged: should the server crash, it is empty, and the results are read again. Each row
// gets the part's number, by a setting of the connection, and a place.
func (u *upload) begin(line []byte, h tables.Header) error {
	d := u.d
	columns := make([]string, len(h.Columns))
	for i, c := range h.Columns {
		columns[i] = tables.Quote(c.Name) + " " + c.Type
	}
	staging := stagingTable(d.table, u.run, line)
	err := d.change(u.ctx, "stage", u.name, func(s *session) error {
		if err := s.locks(u.ctx, staging); err != nil {
			return err
		}
		n, err := s.Exec(u.ctx, "UPDATE "+s.Table.Own("staged")+" SET staging = $2, columns = $3 WHERE id = $1", u.id, staging, string(line))
		if err == nil && n == 0 {
			err = fmt.Errorf("cannot stage %s: %w", u.name, load.ErrStagedGone)
		}
		if err != nil {
			return err
		}
		return s.Script(u.ctx, "CREATE UNLOGGED TABLE IF NOT EXISTS "+s.Table.Own(staging)+" ("+strings.Join(columns, ", ")+", "+
			tables.Quote(tables.PartColumn)+" bigint NOT NULL DEFAULT current_setting('formetl.part')::bigint, "+
			tables.Quote(tables.PlaceColumn)+" bigint GENERATED ALWAYS AS IDENTITY (CACHE 1000)) WITH (autovacuum_enabled = false)")
	})
	if err != nil {
		return err
	}
	from, to := io.Pipe()
	u.rows = &copying{to: to, done: make(chan struct{})}
	go func() {
		defer close(u.rows.done)
		err := d.with(u.ctx, "stage", u.name, func(s *session) error {
			if err := s.Script(u.ctx, "SET formetl.part = "+u.part); err != nil {
				return err
			}
			tag, err := s.conn.CopyFrom(u.ctx, from, "COPY "+s.Table.Own(staging)+" ("+h.Names("")+") FROM STDIN (FORMAT binary)")
			u.rows.rows = tag.RowsAffected()
			return err
		})
		u.rows.failure = err
		_ = from.CloseWithError(errors.Join(err, errEnded)) // a Write that waits gets the cause
	}()
	return nil
}

// send sends bytes of rows.
func (u *upload) send(p []byte) (int, error) {
	n, err := u.rows.to.Write(p)
	if err != nil {
		<-u.rows.done
		if u.rows.failure != nil {
			err = u.rows.failure
		}
	}
	return n, err
}

// Prepare makes the bytes durable, and writes down what they are.
func (u *upload) Prepare(ctx context.Context) (load.Prepared, error) {
	p := load.Prepared{Name: u.name, Staged: u.id, Bytes: u.bytes, SHA256: hex.EncodeToString(u.sum.Sum(nil))}
	if u.ended {
		return p, fmt.Errorf("cannot prepare %s: %w", u.name, errEnded)
	}
	var rows, data any
	if u.rows != nil {
		if err := u.rows.to.Close(); err != nil {
			return p, err
		}
		<-u.rows.done
		if u.rows.failure != nil {
			return p, u.rows.failure
		}
		rows = u.rows.rows
	} else {
		data = append([]byte{}, u.held.Bytes()...)
	}
	err := u.d.with(ctx, "stage", u.name, func(s *session) error {
		_, err := s.Exec(ctx, "UPDATE "+s.Table.Own("staged")+" SET bytes = $2, sha256 = $3, rows = $4, data = $5 WHERE id = $1", u.id, p.Bytes, p.SHA256, rows, data)
		return err
	})
	u.ended = err == nil
	return p, err
}

// Abort removes the object. After Prepare it does nothing.
func (u *upload) Abort() error {
	if u.ended {
		return nil
	}
	u.ended = true
	if u.rows != nil {
		_ = u.rows.to.CloseWithError(errEnded) // it ends the COPY, whose answer does not matter
		<-u.rows.done
	}
	return u.d.drop(u.ctx, u.id)
}

// drop removes what is staged, also after a stop.
func (d *Destination) drop(ctx context.Context, id string) error {
	ctx, cancel := load.Lingering(ctx, cleanupTime)
	defer cancel()
	return d.with(ctx, "remove", "what is staged", func(s *session) error {
		err := s.atomically(ctx, func() error { return s.unstage(ctx, id) })
		if noTable(err) { // nothing was ever written
			return nil
		}
		return err
	})
}

// unstage removes what is staged under ids, and a staging table of which nothing is left.
// Rows that were moved or given up stay in the table until then.
func (s *session) unstage(ctx context.Context, ids ...string) error {
	gone, err := s.Query(ctx, "DELETE FROM "+s.Table.Own("staged")+" WHERE id = ANY($1::text[]) AND table_name = $2 RETURNING staging", ids, s.Table.Name)
	if err != nil {
		return err
	}
	tables := map[string]bool{}
	for _, row := range gone {
		if row[0] != nil {
			tables[string(row[0])] = true
		}
	}
	for _, staging := range slices.Sorted(maps.Keys(tables)) {
		if err := s.locks(ctx, staging); err != nil {
			return err
		}
		left, err := s.Query(ctx, "SELECT 1 FROM "+s.Table.Own("staged")+" WHERE table_name = $1 AND staging = $2 LIMIT 1", s.Table.Name, staging)
		if err == nil && len(left) == 0 {
			// Rows that are still being copied are those of a computer that vanished.
			err = s.Script(ctx, "SET LOCAL lock_timeout = '5s'; DROP TABLE IF EXISTS "+s.Table.Own(staging)+"; SET LOCAL lock_timeout = 0")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkStaged returns an error for what cannot be the reference of a staged object.
func checkStaged(p load.Prepared) error {
	if err := load.CheckObjectName(p.Name); err != nil {
		return err
	}
	if !stagedShape.MatchString(p.Staged) {
		return &load.NameError{Name: p.Staged, Problem: "it is no staged object of a database"}
	}
	return nil
}

// Abort removes a prepared object.
func (d *Destination) Abort(ctx context.Context, p load.Prepared) error {
	if err := checkStaged(p); err != nil {
		return err
	}
	return d.drop(ctx, p.Staged)
}

// Check tells whether a prepared object is staged or committed.
func (d *Destination) Check(ctx context.Context, p load.Prepared) error {
	if err := checkStaged(p); err != nil {
		return err
	}
	return d.with(ctx, "look for", p.Name, func(s *session) error { return s.check(ctx, p) })
}

func (s *session) check(ctx context.Context, p load.Prepared) error {
	found, err := s.Query(ctx, "SELECT staging, rows, part FROM "+s.Table.Own("staged")+
		" WHERE id = $1 AND table_name = $2 AND bytes = $3 AND sha256 = $4", p.Staged, s.Table.Name, p.Bytes, p.SHA256)
	switch {
	case noTable(err):
		return tables.Gone(p)
	case err != nil:
		return err
	case len(found) == 0:
		return s.Committed(ctx, p)
	case found[0][0] == nil || string(found[0][1]) == "0":
		return nil
	}
	// The commit counts the rows. Here it is enough to know that the server did not crash
	// since: then all rows of the part are gone, and other processes may have staged more.
	rows, err := s.Query(ctx, "SELECT 1 FROM "+s.Table.Own(string(found[0][0]))+" WHERE "+tables.Quote(tables.PartColumn)+" = $1 LIMIT 1", string(found[0][2]))
	if noTable(err) || err == nil && len(rows) == 0 {
		return tables.Gone(p)
	}
	return err
}
