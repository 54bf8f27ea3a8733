package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"github.com/formetl/formetl/load"
)

// mostTries is how often a load is tried whose connection was lost.
const mostTries = 4

// Load carries a load out in one transaction. If the connection is lost, also while the server
// commits, it is done again: the manifest tells whether it was committed.
func (t *Table) Load(ctx context.Context, l load.TableLoad) (change load.TableChange, err error) {
	for try := 1; ; try++ {
		var cut bool
		change, cut, err = t.loadOnce(ctx, l)
		if !cut || try == mostTries || ctx.Err() != nil {
			op := "load into"
			if _, after := errors.AsType[*afterError](err); after {
				op = "do the SQL of after: at"
			}
			return change, t.failed(ctx, op, err)
		}
		_ = load.Pause(ctx, time.Duration(try*try)*200*time.Millisecond) // the next try fails where ctx has ended
	}
}

// loadOnce does Load once. cut tells that the connection was lost, so that it may have been done.
func (t *Table) loadOnce(ctx context.Context, l load.TableLoad) (change load.TableChange, cut bool, err error) {
	conn, err := t.connect(ctx)
	if err != nil {
		f, known := explain(err)
		return change, known && f.class == temporary, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // what is committed stays
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		change, err = (&loading{t, l, tx, nil}).run(ctx)
		return err
	})
	return change, err != nil && conn.IsClosed(), err
}

// loading is a load within its transaction.
type loading struct {
	*Table
	load load.TableLoad
	tx   pgx.Tx
	gone []int64 // vanished results, whose rows go
}

// exec does one statement and returns how many rows it changed.
func (l *loading) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	tag, err := l.tx.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

func (l *loading) run(ctx context.Context) (change load.TableChange, err error) {
	held, err := l.exec(ctx, "SELECT 1 FROM "+l.own("leases")+" WHERE dataset = $1 AND holder->>'run_id' = $2 FOR UPDATE", l.dataset(), l.load.Manifest.RunID)
	if err != nil {
		return change, err
	}
	if held == 0 {
		return change, &load.HeldError{Path: l.String()}
	}
	before, version, err := l.last(ctx, l.tx, "FOR UPDATE")
	switch {
	case err != nil:
		return change, err
	case before != nil && before.RunID == l.load.Manifest.RunID: // an earlier try was committed
		return l.done(ctx)
	case version != l.load.Version:
		return change, fmt.Errorf("the manifest: %w", load.ErrConflict)
	}
	read := roaring64.New()
	for _, p := range l.load.Parts {
		read.Or(p.IDs)
	}
	if l.load.Replaced != nil {
		for it := roaring64.AndNot(l.load.Replaced, read).Iterator(); it.HasNext(); {
			l.gone = append(l.gone, int64(it.Next())) //nolint:gosec // ids were int64
		}
	}
	targets := make([]*target, len(l.load.Rows))
	for i, r := range l.load.Rows {
		if targets[i], err = l.stage(ctx, i, r, before); err != nil {
			return change, err
		}
	}
	// Rows of lists may refer to those of results.
	for i := len(targets) - 1; i >= 0; i-- {
		n, err := l.remove(ctx, targets[i], targets[0])
		if err != nil {
			return change, err
		}
		change.Deleted = n // in the end that of the results
	}
	for i, target := range targets {
		updated, inserted, err := l.merge(ctx, target)
		if err != nil {
			return change, err
		}
		if i == 0 {
			change.Updated, change.Inserted = updated, inserted
		}
	}
	if changed := change.Inserted + change.Updated + change.Deleted; changed*10 > l.load.Manifest.Rows {
		for _, target := range targets {
			if _, err := l.exec(ctx, "ANALYZE "+target.sql()); err != nil {
				return change, err
			}
		}
	}
	if err := l.note(ctx, change); err != nil || l.After == "" {
		return change, err
	}
	_, err = l.tx.Conn().PgConn().Exec(ctx, l.After).ReadAll()
	if err != nil {
		err = &afterError{err}
	}
	return change, err
}

// stage makes the table take the rows, and copies them into a temporary table.
func (l *loading) stage(ctx context.Context, i int, r load.TableRows, before *load.Manifest) (*target, error) {
	target, err := l.fit(ctx, r, before)
	if err != nil {
		return nil, err
	}
	target.temporary = fmt.Sprintf("formetl_load_%d", i)
	columns := make([]string, len(target.columns))
	for i, c := range target.columns {
		columns[i] = quote(c.name) + " " + c.kind
	}
	if _, err := l.exec(ctx, "CREATE TEMPORARY TABLE "+quote(target.temporary)+" ("+strings.Join(columns, ", ")+") ON COMMIT DROP"); err != nil {
		return nil, err
	}
	if target.rows, err = copyRows(ctx, l.tx.Conn(), pgx.Identifier{target.temporary}, r); err != nil {
		return nil, err
	}
	_, err = l.exec(ctx, "CREATE INDEX ON "+quote(target.temporary)+" ("+target.key("")+"); ANALYZE "+quote(target.temporary))
	return target, err
}

// remove removes the rows of vanished results, and those of elements that a list lost. results
// is the table of the results.
func (l *loading) remove(ctx context.Context, of, results *target) (n int64, err error) {
	missing := "NOT EXISTS (SELECT 1 FROM " + quote(of.temporary) + " n WHERE " + of.same() + ")"
	gone := "t." + quote(of.id) + " = ANY($1::bigint[])"
	args := []any{l.gone}
	switch {
	case l.load.Full:
		gone, args = missing, nil
	case of != results:
		gone += " OR " + missing + " AND EXISTS (SELECT 1 FROM " + quote(results.temporary) + " r WHERE r." + quote(results.id) + " = t." + quote(of.id) + ")"
	case len(l.gone) == 0:
		return 0, nil
	}
	if !l.SoftDelete {
		return l.exec(ctx, "DELETE FROM "+of.sql()+" t WHERE "+gone, args...)
	}
	return l.exec(ctx, "UPDATE "+of.sql()+" t SET deleted_at = now()"+l.audited()+" WHERE deleted_at IS NULL AND ("+gone+")", args...)
}

// merge updates rows that differ, and inserts missing ones.
func (l *loading) merge(ctx context.Context, into *target) (updated, inserted int64, err error) {
	var set, was, is, names, values []string
	for _, c := range into.columns {
		name := quote(c.name)
		names, values = append(names, name), append(values, "n."+name)
		if c.name == into.id || c.name == into.position {
			continue
		}
		set, was, is = append(set, name+" = n."+name), append(was, "t."+name), append(is, "n."+name)
	}
	for _, name := range into.left { // columns that the results do not have any more
		set, was, is = append(set, quote(name)+" = NULL"), append(was, "t."+quote(name)), append(is, "NULL")
	}
	differs := "ROW(" + strings.Join(was, ", ") + ") IS DISTINCT FROM ROW(" + strings.Join(is, ", ") + ")"
	if len(set) == 0 {
		differs = "false"
	}
	if l.SoftDelete {
		set, differs = append(set, "deleted_at = NULL"), differs+" OR t.deleted_at IS NOT NULL"
	}
	if l.Audit {
		names, values = append(names, "loaded_at", "run_id"), append(values, "now()", literal(l.load.Manifest.RunID))
	}
	if len(set) > 0 {
		updated, err = l.exec(ctx, "UPDATE "+into.sql()+" t SET "+strings.Join(set, ", ")+l.audited()+" FROM "+quote(into.temporary)+" n WHERE "+into.same()+" AND ("+differs+")")
		if err != nil {
			return 0, 0, err
		}
	}
	inserted, err = l.exec(ctx, "INSERT INTO "+into.sql()+" ("+strings.Join(names, ", ")+") SELECT "+strings.Join(values, ", ")+" FROM "+quote(into.temporary)+" n"+
		" WHERE NOT EXISTS (SELECT 1 FROM "+into.sql()+" t WHERE "+into.same()+") ORDER BY "+into.key("n."))
	return updated, inserted, err
}

// audited sets the columns of audit in an update.
func (l *loading) audited() string {
	if !l.Audit {
		return ""
	}
	return ", loaded_at = now(), run_id = " + literal(l.load.Manifest.RunID)
}

// literal is a text in SQL.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// note writes down what the load did: manifest, parts, dead letters and the run.
func (l *loading) note(ctx context.Context, change load.TableChange) error {
	m := &l.load.Manifest
	batch := &pgx.Batch{}
	batch.Queue("INSERT INTO "+l.own("datasets")+` AS d VALUES ($1, 1, $2, $3, $4, $5, $6, $7, $8, now())
		ON CONFLICT (dataset) DO UPDATE SET version = d.version + 1, pipeline = excluded.pipeline, form = excluded.form, run_id = excluded.run_id, watermark = excluded.watermark,
		rows = excluded.rows, rejected = excluded.rejected, manifest = excluded.manifest, changed_at = now()`,
		l.dataset(), m.Pipeline, m.Form, m.RunID, timeOf(m.Watermark), m.Rows, m.Rejected, manifestText(m))
	kept := make([]string, 0, len(m.Parts))
	fresh := map[string]bool{}
	for _, p := range l.load.Parts {
		fresh[p.Path] = true
	}
	for _, p := range m.Parts {
		if !fresh[p.Path] {
			kept = append(kept, p.Path)
		}
	}
	for _, name := range []string{"parts", "rejects"} {
		batch.Queue("DELETE FROM "+l.own(name)+" WHERE dataset = $1 AND part <> ALL($2::text[])", l.dataset(), kept)
	}
	for _, p := range l.load.Parts {
		ids, _, err := load.EncodeIDs(p.IDs)
		if err != nil {
			return err
		}
		batch.Queue("INSERT INTO "+l.own("parts")+" VALUES ($1, $2, $3, $4, $5, $6, $7, nullif($8, 0), nullif($9, 0), $10)",
			l.dataset(), p.Path, timeOf(p.From), timeOf(p.To), p.Undated, p.Rows, p.Rejected, p.MinID, p.MaxID, ids)
		for i, line := range strings.Split(strings.TrimSuffix(string(p.Letters), "\n"), "\n") {
			if line != "" {
				batch.Queue("INSERT INTO "+l.own("rejects")+" VALUES ($1, $2, $3, $4)", l.dataset(), p.Path, i, line)
			}
		}
	}
	batch.Queue("INSERT INTO "+l.own("runs")+" VALUES ($1, $2, now(), $3, $4, $5, $6, $7, $8, $9, $10, $11)",
		l.dataset(), m.RunID, m.Pipeline, m.Form, timeOf(m.Range.From), timeOf(m.Range.To), timeOf(m.Watermark), change.Inserted, change.Updated, change.Deleted, m.Rejected)
	return l.tx.SendBatch(ctx, batch).Close()
}

// done returns what a load did whose commit was not answered.
func (l *loading) done(ctx context.Context) (c load.TableChange, err error) {
	err = l.tx.QueryRow(ctx, "SELECT inserted, updated, deleted FROM "+l.own("runs")+" WHERE dataset = $1 AND run_id = $2", l.dataset(), l.load.Manifest.RunID).
		Scan(&c.Inserted, &c.Updated, &c.Deleted)
	if errors.Is(err, pgx.ErrNoRows) { // somebody emptied the table of runs
		err = nil
	}
	return c, err
}

// afterError is an error of the SQL of a definition.
type afterError struct{ err error }

func (e *afterError) Error() string { return "after: " + e.err.Error() }
func (e *afterError) Unwrap() error { return e.err }
