package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
)

// mostTries is how often a load is tried whose connection was lost.
const mostTries = 4

// Load carries a load out in one transaction. If the connection is lost, also while the server
// commits, the load is done again: the manifest tells whether the first try was committed.
func (t *Table) Load(ctx context.Context, l load.TableLoad) (change load.TableChange, err error) {
	for try := 1; ; try++ {
		var cut bool
		change, cut, err = t.loadOnce(ctx, l)
		if !cut || try == mostTries || ctx.Err() != nil {
			return change, t.failed(ctx, "load into", err)
		}
		_ = load.Pause(ctx, time.Duration(try*try)*200*time.Millisecond) // the next try sees whether ctx ended
	}
}

// loadOnce tries Load once. cut tells that the connection was lost, so that the load may have
// been committed.
func (t *Table) loadOnce(ctx context.Context, l load.TableLoad) (change load.TableChange, cut bool, err error) {
	conn, err := t.connect(ctx)
	if err != nil {
		f, known := explain(err)
		return change, known && f.kind == load.ErrAway, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // what is committed stays
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		change, err = (&loading{Table: t, load: l, tx: tx}).run(ctx)
		return err
	})
	return change, err != nil && conn.IsClosed(), err
}

// loading is a load within its transaction.
type loading struct {
	*Table
	load load.TableLoad
	tx   pgx.Tx

	vanished []int64 // ids of results whose rows are deleted
}

// exec executes one SQL statement and returns how many rows it changed.
func (l *loading) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	tag, err := l.tx.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

func (l *loading) run(ctx context.Context) (change load.TableChange, err error) {
	if _, err := l.tx.Conn().PgConn().Exec(ctx, settings).ReadAll(); err != nil {
		return change, err
	}
	if before, err := l.last(ctx, l.tx, ""); err != nil || l.did(before.manifest) {
		return l.done(ctx, err)
	}
	// The rows are copied before anything is locked that other transactions wait for.
	targets := make([]*target, len(l.load.Rows))
	for i, r := range l.load.Rows {
		if targets[i], err = l.stage(ctx, i, r); err != nil {
			return change, err
		}
	}
	before, err := l.last(ctx, l.tx, "FOR UPDATE")
	if err != nil || l.did(before.manifest) {
		return l.done(ctx, err)
	}
	if before.version != l.load.Version {
		return change, l.conflict()
	}
	lost, err := l.lost(ctx, l.tx, before)
	if err != nil {
		return change, err
	}
	var read []idset.Set
	for _, p := range l.load.Parts {
		read = append(read, p.IDs)
	}
	l.vanished = slices.Collect(l.load.Replaced.Without(idset.Union(read...)).All())
	for _, target := range targets {
		if err := l.alter(ctx, target, before); err != nil {
			return change, err
		}
	}
	// Rows of lists may refer to rows of results, so rows of results are deleted last.
	for i := len(targets) - 1; i >= 0; i-- {
		n, err := l.remove(ctx, targets[i], targets[0])
		if err != nil {
			return change, err
		}
		if err := l.forget(ctx, targets[i], before.manifest); err != nil {
			return change, err
		}
		change.Deleted = n // after the last table, the number of deleted results
	}
	for i, target := range targets {
		updated, inserted, err := l.merge(ctx, target)
		if err == nil {
			err = l.holds(ctx, target)
		}
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
	if err := l.note(ctx, change, before, lost); err != nil {
		return change, err
	}
	if err := l.doAfter(ctx); err != nil {
		return change, err
	}
	return change, l.leased(ctx)
}

// doAfter executes the SQL of the definition's after:, which must stay in the transaction.
func (l *loading) doAfter(ctx context.Context) error {
	if l.After == "" {
		return nil
	}
	var began, is string
	const transaction = "SELECT pg_current_xact_id()::text"
	if err := l.tx.QueryRow(ctx, transaction).Scan(&began); err != nil {
		return err
	}
	_, err := l.tx.Conn().PgConn().Exec(ctx, strings.TrimPrefix(l.After, "\uFEFF")).ReadAll()
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		if f, _ := explain(err); f.kind == load.ErrAway {
			return err
		}
		line := 1 + strings.Count(string([]rune(l.After)[:max(0, min(int(refused.Position)-1, len([]rune(l.After))))]), "\n")
		return unfit(l.dataset(), "correct that file", "was not loaded, because the SQL file that after: names failed at line %d: %s (SQLSTATE %s)", line, refused.Message, refused.Code)
	}
	if err == nil && l.tx.Conn().PgConn().TxStatus() == 'T' {
		err = l.tx.QueryRow(ctx, transaction).Scan(&is)
	}
	if err == nil && is != began {
		err = unfit(l.dataset(), "remove BEGIN, COMMIT and ROLLBACK from that file, and run with --full", "was not loaded, because the SQL file that after: names ended the transaction")
	}
	return err
}

// settings are session settings that the load's SQL relies on, or by which the server notices
// a client that vanished. A row that a policy hides makes the load fail: it would not be
// deleted, or be inserted again.
const settings = "SET LOCAL row_security = off; SET LOCAL client_encoding = 'UTF8'; SET LOCAL standard_conforming_strings = on; " +
	"SET LOCAL tcp_keepalives_idle = 20; SET LOCAL tcp_keepalives_interval = 10; SET LOCAL tcp_keepalives_count = 4"

// did tells whether m is the manifest of this load, so that an earlier try was committed.
func (l *loading) did(m *load.Manifest) bool { return m != nil && m.RunID == l.load.Manifest.RunID }

// conflict returns the error that another run loaded the table meanwhile, an ErrConflict.
func (l *loading) conflict() error { return fmt.Errorf("%s: %w", l, load.ErrConflict) }

// stage copies the rows of a load into a temporary table.
func (l *loading) stage(ctx context.Context, i int, r load.TableRows) (*target, error) {
	target, err := l.targetOf(r)
	if err != nil {
		return nil, err
	}
	target.temporary = fmt.Sprintf("formetl_load_%d", i)
	columns := make([]string, len(target.columns))
	for i, c := range target.columns {
		columns[i] = quote(c.name) + " " + c.kind
	}
	if _, err := l.exec(ctx, "CREATE TEMPORARY TABLE "+target.temp()+" ("+strings.Join(columns, ", ")+") ON COMMIT DROP"); err != nil {
		return nil, err
	}
	if err = copyRows(ctx, l.tx.Conn(), pgx.Identifier{"pg_temp", target.temporary}, r); err != nil {
		return nil, err
	}
	if _, err = l.exec(ctx, "CREATE INDEX ON "+target.temp()+" ("+target.key("")+")"); err == nil {
		_, err = l.exec(ctx, "ANALYZE "+target.temp())
	}
	return target, err
}

// remove removes the rows of vanished results from the table of, or marks them with soft_delete,
// and removes the rows of elements that a list lost. results is the table of the results.
func (l *loading) remove(ctx context.Context, of, results *target) (n int64, err error) {
	missing := "NOT EXISTS (SELECT 1 FROM " + of.temp() + " n WHERE " + of.same() + ")"
	gone := "t." + quote(of.id) + " = ANY($1::bigint[])"
	args := []any{l.vanished}
	switch {
	case l.load.Full:
		gone, args = missing, nil
	case of != results:
		gone += " OR " + missing + " AND EXISTS (SELECT 1 FROM " + results.temp() + " r WHERE r." + quote(results.id) + " = t." + quote(of.id) + ")"
	case len(l.vanished) == 0:
		return 0, nil
	}
	if !l.SoftDelete {
		return l.exec(ctx, "DELETE FROM "+of.sql()+" t WHERE "+gone, args...)
	}
	return l.exec(ctx, "UPDATE "+of.sql()+" t SET deleted_at = now()"+l.audited()+" WHERE deleted_at IS NULL AND ("+gone+")", args...)
}

// forget empties columns of results that were deleted softly, because no full load brings their
// values again: columns that the results no longer have, and those that have another source, name
// or pii rule now.
func (l *loading) forget(ctx context.Context, of *target, before *load.Manifest) error {
	if !l.load.Full || !of.softly || before == nil {
		return nil
	}
	forgotten := slices.Clone(of.dropped)
	for _, is := range l.load.Manifest.Schema {
		same := func(was load.Column) bool { return was.From == is.From && was.PII == is.PII && was.Name == is.Name }
		if slices.ContainsFunc(before.Schema, same) {
			continue
		}
		for _, c := range of.columns {
			value := c.name != of.id && !slices.Contains(of.within, c.name)
			if value && (is.Explode && of.list == is.Name || of.list == "" && c.name == is.Name) {
				forgotten = append(forgotten, c.name)
			}
		}
	}
	if len(forgotten) == 0 {
		return nil
	}
	var set []string
	for _, name := range forgotten {
		set = append(set, quote(name)+" = NULL")
	}
	_, err := l.exec(ctx, "UPDATE "+of.sql()+" SET "+strings.Join(set, ", ")+" WHERE deleted_at IS NOT NULL")
	return err
}

// merge updates the table's rows that differ from those read, and inserts missing rows.
func (l *loading) merge(ctx context.Context, into *target) (updated, inserted int64, err error) {
	var set, was, is, names, values []string
	for _, c := range into.columns {
		name := quote(c.name)
		names, values = append(names, name), append(values, "n."+name)
		if c.name == into.id || slices.Contains(into.within, c.name) {
			continue
		}
		set, was, is = append(set, name+" = n."+name), append(was, "t."+name), append(is, "n."+name)
	}
	for _, name := range into.dropped { // columns that the results no longer have
		set, was, is = append(set, quote(name)+" = NULL"), append(was, "t."+quote(name)), append(is, "NULL")
	}
	differs := "ROW(" + strings.Join(was, ", ") + ") IS DISTINCT FROM ROW(" + strings.Join(is, ", ") + ")"
	if len(set) == 0 {
		differs = "false"
	}
	if into.softly {
		set, differs = append(set, "deleted_at = NULL"), differs+" OR t.deleted_at IS NOT NULL"
	}
	if l.Audit {
		names, values = append(names, "loaded_at", "run_id"), append(values, "now()", literal(l.load.Manifest.RunID))
	}
	if len(set) > 0 {
		updated, err = l.exec(ctx, "UPDATE "+into.sql()+" t SET "+strings.Join(set, ", ")+l.audited()+" FROM "+into.temp()+" n WHERE "+into.same()+" AND ("+differs+")")
		if err != nil {
			return 0, 0, err
		}
	}
	inserted, err = l.exec(ctx, "INSERT INTO "+into.sql()+" ("+strings.Join(names, ", ")+") SELECT "+strings.Join(values, ", ")+" FROM "+into.temp()+" n"+
		" WHERE NOT EXISTS (SELECT 1 FROM "+into.sql()+" t WHERE "+into.same()+") ORDER BY "+into.key("n."))
	return updated, inserted, err
}

// holds returns an error unless the table holds all rows that were loaded. A trigger or a rule
// of the database may leave some rows out, so rows are only looked for where there are any.
func (l *loading) holds(ctx context.Context, into *target) error {
	lacks := false
	err := l.tx.QueryRow(ctx, "SELECT CASE WHEN relhastriggers OR relhasrules THEN EXISTS (SELECT FROM "+into.temp()+" n WHERE NOT EXISTS (SELECT FROM "+into.sql()+" t WHERE "+into.same()+
		")) ELSE false END FROM pg_class WHERE oid = to_regclass($1)", into.sql()).Scan(&lacks)
	if err == nil && lacks {
		err = into.misfit("change that trigger or rule so that it keeps all rows of formetl's role, or remove it", "does not get all rows: a trigger or a rule of the database leaves some out")
	}
	return err
}

// audited returns the SQL that sets the columns of Audit, loaded_at and run_id, in an update.
func (l *loading) audited() string {
	if !l.Audit {
		return ""
	}
	return ", loaded_at = now(), run_id = " + literal(l.load.Manifest.RunID)
}

// literal returns a text as a string literal of SQL.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// note records in formetl's own tables what the load did: manifest, parts, dead letters and the
// run. lost are the exploded lists that lacked rows, which may not all have come back.
func (l *loading) note(ctx context.Context, change load.TableChange, before known, lost map[string]int64) error {
	m := &l.load.Manifest
	lists := map[string]int64{}
	maps.Copy(lists, before.lists)
	for _, r := range l.load.Rows[1:] {
		n, err := l.elements(ctx, l.tx, r.List)
		if err != nil {
			return err
		}
		if lists[r.List] = n; !l.load.Full && len(l.load.Parts) < len(m.Parts) { // parts that were not read again may still lack theirs
			lists[r.List] = max(n, lost[r.List])
		}
	}
	counted, _ := json.Marshal(lists) // texts and numbers are encoded without errors
	// Two first loads of a table may meet here: one waits for the other, and finds its version.
	n, err := l.exec(ctx, "INSERT INTO "+l.own("datasets")+` AS d VALUES ($1, 1, $2, $3, $4, $5, $6, $7, $8, $9, now())
		ON CONFLICT (dataset) DO UPDATE SET version = d.version + 1, pipeline = excluded.pipeline, form = excluded.form, run_id = excluded.run_id, watermark = excluded.watermark,
		rows = excluded.rows, rejected = excluded.rejected, lists = excluded.lists, manifest = excluded.manifest, changed_at = now() WHERE d.version::text = $10`,
		l.dataset(), m.Pipeline, m.Form, m.RunID, timeOf(m.Watermark), m.Rows, m.Rejected, string(counted), manifestText(m), l.load.Version)
	if err == nil && n == 0 {
		err = l.conflict()
	}
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
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
		batch.Queue("INSERT INTO "+l.own("parts")+" VALUES ($1, $2, $3, $4, $5, $6, $7, nullif($8::bigint, 0), nullif($9::bigint, 0), $10)",
			l.dataset(), p.Path, timeOf(p.From), timeOf(p.To), p.Undated, p.Rows, p.Rejected, p.MinID, p.MaxID, idset.Encode(p.IDs))
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

// leased returns an error unless this run holds the table's lease. The lease then stays this
// run's until the commit.
func (l *loading) leased(ctx context.Context) error {
	n, err := l.exec(ctx, "SELECT 1 FROM "+l.own("leases")+" WHERE dataset = $1 AND holder->>'run_id' = $2 FOR UPDATE", l.dataset(), l.load.Manifest.RunID)
	if err == nil && n == 0 {
		err = &load.HeldError{Path: l.String()}
	}
	return err
}

// done returns what this load changed, when an earlier try of it was committed without an
// answer. If err is not nil, it returns err.
func (l *loading) done(ctx context.Context, err error) (c load.TableChange, _ error) {
	if err != nil {
		return c, err
	}
	err = l.tx.QueryRow(ctx, "SELECT inserted, updated, deleted FROM "+l.own("runs")+" WHERE dataset = $1 AND run_id = $2", l.dataset(), l.load.Manifest.RunID).
		Scan(&c.Inserted, &c.Updated, &c.Deleted)
	if errors.Is(err, pgx.ErrNoRows) { // the table of runs was emptied
		err = nil
	}
	return c, err
}
