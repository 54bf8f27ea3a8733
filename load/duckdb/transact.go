//go:build duckdb

package duckdb

import (
	"bufio"
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"

	driver "github.com/duckdb/duckdb-go/v2"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
	"github.com/formetl/formetl/load/local"
)

// Stage begins an object in the folder.
func (d *Destination) Stage(ctx context.Context, run, name string) (load.Upload, error) {
	return d.folder.Stage(ctx, run, name)
}

// Abort removes a prepared object.
func (d *Destination) Abort(ctx context.Context, p load.Prepared) error {
	return d.folder.Abort(ctx, p)
}

// Check tells whether a prepared object is staged or committed.
func (d *Destination) Check(ctx context.Context, p load.Prepared) error {
	err := d.folder.Check(ctx, p)
	if !errors.Is(err, load.ErrStagedGone) {
		return err
	}
	return d.with(ctx, "look for", p.Name, reading, func(s *session) error { return s.Committed(ctx, p) })
}

// Commit makes a prepared object visible. The rows of a part go into the table.
func (d *Destination) Commit(ctx context.Context, p load.Prepared) error {
	return d.Transact(ctx, func(ctx context.Context, in load.Destination) error { return in.Commit(ctx, p) })
}

// Transact implements load.Transactor. Staged rows are read before the database is opened.
// Changes in the folder are made once the transaction is committed. If the process is killed
// in between, the next run does the commit again, which changes nothing in the database.
func (d *Destination) Transact(ctx context.Context, do func(ctx context.Context, d load.Destination) error) error {
	if err := ctx.Err(); err != nil {
		return d.failed(ctx, "commit to", "", err)
	}
	s, err := d.newSession(ctx)
	if err != nil {
		return d.failed(ctx, "commit to", "", err)
	}
	t := &transaction{d: d, s: s, staged: map[string]tables.Staged{}}
	t.Transaction = tables.Transaction{Staging: staging{t}, Begin: t.begin}
	err = do(ctx, t)
	if err == nil {
		_, err = t.Finish(ctx)
	}
	if err == nil {
		err = s.Script(ctx, "COMMIT")
	}
	s.close()
	if err != nil {
		return d.failed(ctx, "commit to", "", err)
	}
	for _, change := range t.afterwards {
		if err := change(ctx); err != nil {
			return err
		}
	}
	return nil
}

// transaction is the destination within a transaction.
type transaction struct {
	tables.Transaction
	d          *Destination
	mu         sync.Mutex
	s          *session
	staged     map[string]tables.Staged // by the reference of the staged object
	lines      []string                 // the headers of the tables in memory
	parts      int64                    // how many parts lie there
	afterwards []func(ctx context.Context) error
}

// begin opens the database and begins the transaction there.
func (t *transaction) begin(ctx context.Context) (*tables.Session, error) {
	if err := t.d.attach(ctx, t.s, writing); err != nil {
		return nil, err
	}
	if err := t.s.Script(ctx, "BEGIN"); err != nil {
		return nil, err
	}
	return &t.s.Session, t.s.prepareTables(ctx)
}

// then notes a change in the folder for the time after the transaction.
func (t *transaction) then(change func(ctx context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.afterwards = append(t.afterwards, change)
}

// Commit reads what is staged, and notes that it becomes visible with the transaction.
func (t *transaction) Commit(ctx context.Context, p load.Prepared) error {
	if err := local.CheckStaged(p); err != nil {
		return err
	}
	if err := t.read(ctx, p); err != nil {
		return t.d.failed(ctx, "commit", p.Name, err)
	}
	return t.Transaction.Commit(ctx, p)
}

// Get reads an object as the transaction sees it.
func (t *transaction) Get(ctx context.Context, name string) ([]byte, string, error) {
	if inFolder(name) {
		return t.d.folder.Get(ctx, name)
	}
	return t.Transaction.Get(ctx, name)
}

// Put writes an object with the transaction.
func (t *transaction) Put(ctx context.Context, name string, data []byte, version string) error {
	if !inFolder(name) {
		return t.Transaction.Put(ctx, name, data, version)
	}
	t.then(func(ctx context.Context) error { return t.d.folder.Put(ctx, name, data, version) })
	return load.CheckName(name)
}

// Delete removes an object with the transaction.
func (t *transaction) Delete(ctx context.Context, name string) error {
	if !inFolder(name) {
		return t.Transaction.Delete(ctx, name)
	}
	t.then(func(ctx context.Context) error { return t.d.folder.Delete(ctx, name) })
	return load.CheckName(name)
}

// List lists the objects as the transaction sees them.
func (t *transaction) List(ctx context.Context, prefix string) ([]load.Object, error) {
	if inFolder(prefix) {
		return t.d.folder.List(ctx, prefix)
	}
	return t.Transaction.List(ctx, prefix)
}

// staging is what runs staged in the folder.
type staging struct{ t *transaction }

// CheckName implements tables.Staging.
func (staging) CheckName(p load.Prepared) error { return local.CheckStaged(p) }

// Check implements tables.Staging.
func (g staging) Check(ctx context.Context, s *tables.Session, p load.Prepared) error {
	err := g.t.d.folder.Check(ctx, p)
	if errors.Is(err, load.ErrStagedGone) {
		return s.Committed(ctx, p)
	}
	return err
}

// Find implements tables.Staging by what Commit read.
func (g staging) Find(_ context.Context, _ *tables.Session, p load.Prepared) (tables.Staged, error) {
	g.t.mu.Lock()
	defer g.t.mu.Unlock()
	found, ok := g.t.staged[p.Staged]
	if !ok {
		return found, tables.Gone(p)
	}
	return found, nil
}

// Drop implements tables.Staging.
func (g staging) Drop(_ context.Context, _ *tables.Session, all ...load.Prepared) error {
	for _, p := range all {
		g.t.then(func(ctx context.Context) error { return g.t.d.folder.Abort(ctx, p) })
	}
	return nil
}

// read reads a staged object. Its rows go into a table in memory, which all parts with the
// same header share. An object that is gone may be committed already.
func (t *transaction) read(ctx context.Context, p load.Prepared) error {
	err := t.d.folder.Check(ctx, p)
	if errors.Is(err, load.ErrStagedGone) {
		return nil
	}
	if err != nil {
		return err
	}
	file, err := t.d.folder.Open(ctx, p.Staged)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // read only
	in := bufio.NewReaderSize(file, 1<<20)
	mark, err := in.Peek(len(tables.HeaderMark))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var found tables.Staged
	if string(mark) == tables.HeaderMark {
		found, err = t.readRows(ctx, in)
	} else {
		found.Data, err = io.ReadAll(in)
	}
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.staged[p.Staged] = found
	}
	return err
}

// readRows reads the rows of a part into memory.
func (t *transaction) readRows(ctx context.Context, in *bufio.Reader) (found tables.Staged, err error) {
	rows, err := tables.NewRowReader(in, dialect(), values())
	if err != nil {
		return found, err
	}
	name, part, err := t.memoryTable(ctx, rows)
	if err != nil {
		return found, err
	}
	found = tables.Staged{Table: "memory.main." + tables.Quote(name), Part: strconv.FormatInt(part, 10), Line: rows.Line}
	conn, err := t.s.db.Conn(ctx)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	err = conn.Raw(func(conn any) error {
		to, err := driver.NewAppender(conn.(sqldriver.Conn), "memory", "main", name)
		if err != nil {
			return err
		}
		found.Rows, err = appendRows(to, rows, part)
		if err != nil {
			return errors.Join(err, to.Close())
		}
		return to.CloseWithCancel(ctx)
	})
	return found, err
}

// appendRows appends all rows, each with the number of its part and its place, and counts them.
func appendRows(to *driver.Appender, rows *tables.RowReader, part int64) (n int64, err error) {
	full := make([]sqldriver.Value, len(rows.Header.Columns)+2)
	for ; ; n++ {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		for i, v := range row {
			full[i] = v
		}
		full[len(row)], full[len(row)+1] = part, n
		if err := to.AppendRow(full...); err != nil {
			return n, err
		}
	}
}

// memoryTable returns the table in memory for rows of a header, and the number of a new part.
func (t *transaction) memoryTable(ctx context.Context, rows *tables.RowReader) (name string, part int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.parts++
	for i, line := range t.lines {
		if line == string(rows.Line) {
			return "rows_" + strconv.Itoa(i), t.parts, nil
		}
	}
	name = "rows_" + strconv.Itoa(len(t.lines))
	columns := make([]string, 0, len(rows.Header.Columns)+2)
	for _, c := range rows.Header.Columns {
		columns = append(columns, tables.Quote(c.Name)+" "+c.Type)
	}
	columns = append(columns, tables.Quote(tables.PartColumn)+" BIGINT", tables.Quote(tables.PlaceColumn)+" BIGINT")
	t.lines = append(t.lines, string(rows.Line))
	return name, t.parts, t.s.Script(ctx, "CREATE TABLE memory.main."+tables.Quote(name)+" ("+strings.Join(columns, ", ")+")")
}
