package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
)

// exists tells whether the table is there.
func (s *session) exists(ctx context.Context) (bool, error) {
	found, err := s.query(ctx, "SELECT to_regclass($1) IS NOT NULL", s.table.String())
	return err == nil && string(found[0][0]) == "t", err
}

// columns returns the table's columns with their types as the server prints them, nil if
// the table is not there.
func (s *session) columns(ctx context.Context) ([]column, error) {
	found, err := s.query(ctx, "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum", s.table.String())
	columns := make([]column, len(found))
	for i, row := range found {
		columns[i] = column{string(row[0]), string(row[1])}
	}
	return columns, err
}

// partColumns returns the columns of the parts that lie in the table.
func (s *session) partColumns(ctx context.Context) (headers []header, err error) {
	found, err := s.query(ctx, "SELECT DISTINCT columns FROM "+s.table.own("objects")+" WHERE table_name = $1 AND data IS NULL", s.table.name)
	if err != nil {
		return nil, err
	}
	for _, row := range found {
		h, err := decodeHeader(row[0])
		if err != nil {
			return nil, err
		}
		headers = append(headers, h)
	}
	return headers, nil
}

// fit makes the table take rows: it creates the table, or adds columns. If the table holds
// no part any more, a run replaces all of it, and columns may change and go.
func (s *session) fit(ctx context.Context, h header) error {
	there, err := s.columns(ctx)
	if err != nil {
		return err
	}
	if len(there) == 0 {
		return s.create(ctx, h)
	}
	parts, err := s.partColumns(ctx)
	if err != nil {
		return err
	}
	var changes []string
	for _, c := range h.Columns {
		at := slices.IndexFunc(there, func(t column) bool { return t.Name == c.Name })
		switch {
		case at < 0:
			changes = append(changes, "ADD COLUMN "+h.define(c))
		case there[at].Type != c.Type && len(parts) > 0:
			return s.unfit(c, there[at].Type)
		case there[at].Type != c.Type:
			changes = append(changes, "ALTER COLUMN "+quote(c.Name)+" TYPE "+c.Type+" USING NULL::"+c.Type)
		}
	}
	if len(parts) == 0 {
		for _, t := range there {
			if !slices.ContainsFunc(h.Columns, func(c column) bool { return c.Name == t.Name }) {
				changes = append(changes, "DROP COLUMN "+quote(t.Name))
			}
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return s.script(ctx, "ALTER TABLE "+s.table.String()+" "+strings.Join(changes, ", "))
}

// create creates the table. Rows are found by their id: by the primary key, or by an index
// where a result has several rows.
func (s *session) create(ctx context.Context, h header) error {
	columns := make([]string, len(h.Columns))
	for i, c := range h.Columns {
		columns[i] = h.define(c)
	}
	sql := "CREATE TABLE " + s.table.String() + " (" + strings.Join(columns, ", ") + ")"
	if h.Place != "" {
		sql += "; CREATE INDEX ON " + s.table.String() + " (" + quote(h.ID) + ")"
	}
	return s.script(ctx, sql)
}

// unfit says that somebody changed a column.
func (s *session) unfit(c column, is string) error {
	return &load.TableError{
		Table: s.table.schema + "." + s.table.name, Problem: fmt.Sprintf("has the column %q as %s, and formetl made it as %s", c.Name, is, c.Type),
		Hint: "restore the column, or drop the table and run with --full",
	}
}

// Replaceable implements load.Replacer. It refuses a table that formetl did not make, and
// one whose columns somebody changed.
func (d *Destination) Replaceable(ctx context.Context, _ string) error {
	return d.with(ctx, "use", "", func(s *session) error {
		there, err := s.columns(ctx)
		if err != nil || len(there) == 0 {
			return err
		}
		ours, err := s.query(ctx, "SELECT 1 FROM "+s.table.own("objects")+" WHERE table_name = $1 LIMIT 1", s.table.name)
		if noTable(err) || err == nil && len(ours) == 0 {
			return &load.CreateError{Op: "use", Path: d.String(), Hint: "choose another table, or rename or drop this one", Err: errors.New("a table is there that formetl did not make")}
		}
		if err != nil {
			return err
		}
		parts, err := s.partColumns(ctx)
		for _, h := range parts {
			for _, c := range h.Columns {
				at := slices.IndexFunc(there, func(t column) bool { return t.Name == c.Name })
				if at < 0 {
					return s.unfit(c, "no column")
				}
				if there[at].Type != c.Type {
					return s.unfit(c, there[at].Type)
				}
			}
		}
		return err
	})
}
