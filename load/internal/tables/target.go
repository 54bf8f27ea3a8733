package tables

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/formetl/formetl/load"
)

// exists tells whether the table is there.
func (s *Session) exists(ctx context.Context) (bool, error) {
	columns, err := s.columns(ctx)
	return len(columns) > 0, err
}

// columns returns the table's columns with their types as the database prints them, nil if
// the table is not there.
func (s *Session) columns(ctx context.Context) ([]Column, error) {
	found, err := s.Query(ctx, s.Dialect.Columns, s.Table.Schema, s.Table.Name)
	columns := make([]Column, len(found))
	for i, row := range found {
		columns[i] = Column{string(row[0]), string(row[1])}
	}
	return columns, err
}

// partColumns returns the columns of the parts that lie in the table, but for those of some
// objects.
func (s *Session) partColumns(ctx context.Context, without ...string) (headers []Header, err error) {
	found, err := s.Query(ctx, "SELECT DISTINCT columns FROM "+s.Table.Own("objects")+" WHERE table_name = $1 AND data IS NULL AND NOT name = ANY($2::text[])", s.Table.Name, without)
	if err != nil {
		return nil, err
	}
	for _, row := range found {
		h, err := DecodeHeader(row[0])
		if err != nil {
			return nil, err
		}
		headers = append(headers, h)
	}
	return headers, nil
}

// Fit makes the table take rows of these columns.
func (s *Session) Fit(ctx context.Context, h Header) error { return s.fit(ctx, []Header{h}, nil) }

// fit makes the table take rows: it creates the table, or adds columns. If the table holds
// no part but those that are removed, a run replaces all of it, and columns may change and go.
func (s *Session) fit(ctx context.Context, headers []Header, removed []string) error {
	if len(headers) == 0 {
		return nil
	}
	there, err := s.columns(ctx)
	if err != nil {
		return err
	}
	if len(there) == 0 {
		if err := s.create(ctx, headers[0]); err != nil || len(headers) == 1 {
			return err
		}
		there = headers[0].Columns
	}
	parts, err := s.partColumns(ctx, removed...)
	if err != nil {
		return err
	}
	var changes []string
	wanted := map[string]bool{} // columns of the table
	for _, h := range headers {
		for _, c := range h.Columns {
			at := index(there, c.Name)
			switch {
			case at < 0:
				changes = append(changes, "ADD COLUMN "+h.define(c))
				there = append(there, c)
				wanted[c.Name] = true
				continue
			case there[at].Type == c.Type:
			case len(parts) > 0 || wanted[there[at].Name]:
				return s.unfit(c, there[at].Type)
			default:
				changes = append(changes, "ALTER COLUMN "+Quote(there[at].Name)+" TYPE "+c.Type+" USING NULL::"+c.Type)
				there[at].Type = c.Type
			}
			wanted[there[at].Name] = true
		}
	}
	for _, c := range there {
		if len(parts) == 0 && !wanted[c.Name] {
			changes = append(changes, "DROP COLUMN "+Quote(c.Name))
		}
	}
	return s.alter(ctx, changes)
}

// alter changes the table's columns.
func (s *Session) alter(ctx context.Context, changes []string) error {
	if len(changes) == 0 {
		return nil
	}
	return s.Script(ctx, "ALTER TABLE "+s.Table.String()+" "+strings.Join(changes, ", "))
}

// create creates the table. Rows are found by their id.
func (s *Session) create(ctx context.Context, h Header) error {
	columns := make([]string, len(h.Columns))
	for i, c := range h.Columns {
		columns[i] = h.define(c)
	}
	sql := "CREATE TABLE " + s.Table.String() + " (" + strings.Join(columns, ", ") + ")"
	if h.Place != "" {
		sql += "; CREATE INDEX ON " + s.Table.String() + " (" + Quote(h.ID) + ")"
	}
	return s.Script(ctx, sql)
}

// unfit says that somebody changed a column.
func (s *Session) unfit(c Column, is string) error {
	return &load.TableError{
		Table: s.Table.Shown(), Problem: fmt.Sprintf("has the column %q as %s, and formetl made it as %s", c.Name, is, c.Type),
		Hint: "restore the column, or drop the table and run with --full",
	}
}

// Replaceable does load.Replacer's part for a table with an address. It refuses a table that
// formetl did not make, and one whose columns somebody changed.
func (s *Session) Replaceable(ctx context.Context, address string) error {
	there, err := s.columns(ctx)
	if err != nil || len(there) == 0 {
		return err
	}
	ours, err := s.Query(ctx, "SELECT 1 FROM "+s.Table.Own("objects")+" WHERE table_name = $1 LIMIT 1", s.Table.Name)
	if err != nil && s.Dialect.NoTable(err) || err == nil && len(ours) == 0 {
		return &load.CreateError{Op: "use", Path: address, Hint: "choose another table, or rename or drop this one", Err: errors.New("a table is there that formetl did not make")}
	}
	if err != nil {
		return err
	}
	parts, err := s.partColumns(ctx)
	for _, h := range parts {
		for _, c := range h.Columns {
			at := index(there, c.Name)
			if at < 0 {
				return s.unfit(c, "no column")
			}
			if there[at].Type != c.Type {
				return s.unfit(c, there[at].Type)
			}
		}
	}
	return err
}
