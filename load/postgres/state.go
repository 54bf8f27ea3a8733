package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
)

// Last returns the manifest that the last load left, and its version, as load.Table says.
func (t *Table) Last(ctx context.Context) (m *load.Manifest, version string, err error) {
	err = t.with(ctx, "read what the last run left in", func(c *pgx.Conn) error {
		if _, tables, err := t.ready(ctx, c); err != nil || !tables {
			return err
		}
		return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
			known, err := t.last(ctx, tx, "")
			m, version = known.manifest, known.version
			return err
		})
	})
	return m, version, err
}

// querier is a database connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// known is what formetl's own tables hold of a table since its last load.
type known struct {
	manifest *load.Manifest // the last load's manifest, nil if there was no load
	version  string
	lists    map[string]int64 // number of rows of each list that was ever exploded
}

// last reads what formetl's own tables hold of the table. lock is "FOR UPDATE" within a load,
// else "".
func (t *Table) last(ctx context.Context, q querier, lock string) (k known, err error) {
	var text, lists []byte
	var number int64
	err = q.QueryRow(ctx, "SELECT manifest::text, lists::text, version FROM "+t.own("datasets")+" WHERE dataset = $1 "+lock, t.dataset()).Scan(&text, &lists, &number)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return known{version: load.NoVersion}, nil
	case err != nil:
		return k, err
	}
	m := &load.Manifest{}
	if err := errors.Join(json.Unmarshal(text, m), json.Unmarshal(lists, &k.lists)); err != nil {
		return k, &load.ManifestError{Name: t.own("datasets"), Problem: "it is damaged", Err: err}
	}
	rows, err := q.Query(ctx, "SELECT part, range_from, range_to, undated, rows, rejected, coalesce(min_id, 0), coalesce(max_id, 0) FROM "+t.own("parts")+
		" WHERE dataset = $1 ORDER BY undated, range_from NULLS FIRST, part", t.dataset())
	if err != nil {
		return k, err
	}
	m.Parts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p load.Part, err error) {
		var from, to *time.Time
		err = row.Scan(&p.Path, &from, &to, &p.Undated, &p.Rows, &p.Rejected, &p.MinID, &p.MaxID)
		p.From, p.To = wallOf(from), wallOf(to)
		return p, err
	})
	k.manifest, k.version = m, strconv.FormatInt(number, 10)
	return k, err
}

func wallOf(t *time.Time) load.WallTime {
	if t == nil {
		return load.WallTime{}
	}
	return load.Wall(*t)
}

// timeOf returns a wall-clock time as a parameter of SQL; null for no bound.
func timeOf(w load.WallTime) *time.Time {
	if w.IsZero() {
		return nil
	}
	return &w.Time
}

// IDs returns the ids of a part's results.
func (t *Table) IDs(ctx context.Context, p load.Part) (ids idset.Set, err error) {
	var data []byte
	err = t.with(ctx, "read the parts of", func(c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT ids FROM "+t.own("parts")+" WHERE dataset = $1 AND part = $2", t.dataset(), p.Path).Scan(&data)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("%w: it is missing", idset.ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	return idset.Decode(data)
}

// Lacking returns the parts of which results are missing in the table, and the names of the tables
// of exploded lists that lack rows.
func (t *Table) Lacking(ctx context.Context, m *load.Manifest) (lacking []load.Part, lists []string, err error) {
	id, err := idOf(m)
	if err != nil {
		return nil, nil, err
	}
	ids, sets := idset.Builder{}, map[string][]byte{}
	err = t.with(ctx, "look for the rows of", func(c *pgx.Conn) error {
		parts, err := c.Query(ctx, "SELECT part, ids FROM "+t.own("parts")+" WHERE dataset = $1", t.dataset())
		if err != nil {
			return err
		}
		var part string
		var set []byte
		if _, err := pgx.ForEachRow(parts, []any{&part, &set}, func() error {
			sets[part] = slices.Clone(set)
			return nil
		}); err != nil {
			return err
		}
		k, err := t.last(ctx, c, "")
		if err != nil {
			return err
		}
		lost, err := t.lost(ctx, c, k)
		if err != nil {
			return err
		}
		for _, list := range slices.Sorted(maps.Keys(lost)) {
			lists = append(lists, t.schema+"."+t.tableOf(list))
		}
		from, err := t.live(ctx, c, t.name, id)
		if err != nil || from == "" {
			return err
		}
		rows, err := c.Query(ctx, "SELECT "+quote(id)+from+" AND "+quote(id)+" >= 0")
		if err != nil {
			return err
		}
		var n int64
		_, err = pgx.ForEachRow(rows, []any{&n}, func() error {
			ids.Add(n)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	there := ids.Set()
	for _, p := range m.Parts {
		if p.Rows == 0 {
			continue
		}
		if of, err := idset.Decode(sets[p.Path]); err != nil || !of.Without(there).IsEmpty() {
			lacking = append(lacking, p)
		}
	}
	return lacking, lists, nil
}

// lost returns the lists that the last load exploded and that have fewer rows now, with the
// number of rows that each had.
func (t *Table) lost(ctx context.Context, q querier, k known) (map[string]int64, error) {
	lost := map[string]int64{}
	for list, n := range k.lists {
		if !(&target{list: list}).madeBy(k.manifest) {
			continue // the last load did not write the list's table
		}
		is, err := t.elements(ctx, q, list)
		if err != nil {
			return nil, err
		}
		if is < n {
			lost[list] = n
		}
	}
	return lost, nil
}

// elements counts the rows of an exploded list.
func (t *Table) elements(ctx context.Context, q querier, list string) (n int64, err error) {
	from, err := t.live(ctx, q, t.tableOf(list), "")
	if err == nil && from != "" {
		err = q.QueryRow(ctx, "SELECT count(*)"+from).Scan(&n)
	}
	return n, err
}

// live returns the end of a query for the rows of a table that were not deleted softly. It is
// empty if there is no such table, or if the table lacks the column needs; "" needs no column.
func (t *Table) live(ctx context.Context, q querier, table, needs string) (string, error) {
	there, err := t.columnsOf(ctx, q, quote(t.schema, table))
	has := func(name string) bool {
		return slices.ContainsFunc(there, func(c column) bool { return c.name == name })
	}
	switch {
	case err != nil || len(there) == 0 || needs != "" && !has(needs):
		return "", err
	case has(deletedAt):
		return " FROM " + quote(t.schema, table) + " WHERE " + deletedAt + " IS NULL", nil
	}
	return " FROM " + quote(t.schema, table) + " WHERE true", nil
}

// idOf returns the name of the manifest's column with the results' ids.
func idOf(m *load.Manifest) (string, error) {
	at := slices.IndexFunc(m.Schema, func(c load.Column) bool { return c.From == "result_id" })
	if at < 0 {
		return "", errors.New("the manifest has no column with the result's id")
	}
	return m.Schema[at].Name, nil
}

// LettersTable returns the name of the table with the dead letters.
func (t *Table) LettersTable() string { return t.Control + ".rejects" }

// Letters returns the dead letters of a part.
func (t *Table) Letters(ctx context.Context, p load.Part) (lines []byte, err error) {
	err = t.with(ctx, "read the dead letters of", func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, "SELECT reject::text FROM "+t.own("rejects")+" WHERE dataset = $1 AND part = $2 ORDER BY line", t.dataset(), p.Path)
		if err != nil {
			return err
		}
		var line []byte
		_, err = pgx.ForEachRow(rows, []any{&line}, func() error {
			lines = append(append(lines, line...), '\n')
			return nil
		})
		return err
	})
	return lines, err
}

// Amend replaces the table's manifest and leaves parts and rows.
func (t *Table) Amend(ctx context.Context, m *load.Manifest, version string) error {
	return t.with(ctx, "change what the last run left in", func(c *pgx.Conn) error {
		tag, err := c.Exec(ctx, "UPDATE "+t.own("datasets")+" SET version = version + 1, watermark = $3, manifest = $4, changed_at = now() WHERE dataset = $1 AND version = $2::bigint",
			t.dataset(), version, timeOf(m.Watermark), manifestText(m))
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("the manifest: %w", load.ErrConflict)
		}
		return err
	})
}

// manifestText returns the manifest as JSON without its parts, which are rows of a table of
// their own.
func manifestText(m *load.Manifest) string {
	without := *m
	without.Parts = nil
	text, _ := json.Marshal(without) // texts and numbers are encoded without errors
	return string(text)
}
