package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/formetl/formetl/load"
)

// Get reads an object. A part is read from the table.
func (d *Destination) Get(ctx context.Context, name string) (data []byte, version string, err error) {
	if err := load.CheckName(name); err != nil {
		return nil, "", err
	}
	rows := false
	err = d.with(ctx, "read", name, func(s *session) error {
		data, version, rows, err = s.get(ctx, name)
		return err
	})
	if !rows {
		return data, version, err
	}
	object, err := d.Open(ctx, name)
	if err != nil {
		return nil, "", err
	}
	data, err = io.ReadAll(object)
	return data, version, errors.Join(err, object.Close())
}

// get reads an object. rows tells that it is a part, whose data lie in the table.
func (s *session) get(ctx context.Context, name string) (data []byte, version string, rows bool, err error) {
	found, err := s.queryBytes(ctx, "SELECT version::text, data FROM "+s.table.own("objects")+" WHERE table_name = $1 AND name = $2", s.table.name, name)
	if err != nil && !noTable(err) {
		return nil, "", false, err
	}
	if len(found) == 0 {
		return nil, "", false, fmt.Errorf("cannot read %s: %w", name, load.ErrNotExist)
	}
	data, version = found[0][1], string(found[0][0])
	if data == nil {
		return nil, version, true, nil
	}
	return data, version, false, nil
}

// Put writes an object whole.
func (d *Destination) Put(ctx context.Context, name string, data []byte, version string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	return d.change(ctx, "write", name, func(s *session) error { return s.put(ctx, name, data, version) })
}

// put writes an object if it has the version.
func (s *session) put(ctx context.Context, name string, data []byte, version string) error {
	if data == nil {
		data = []byte{}
	}
	if version != load.NoVersion && version != load.AnyVersion {
		if _, err := strconv.ParseInt(version, 10, 64); err != nil {
			return fmt.Errorf("cannot write %s: %w", name, load.ErrConflict) // no object ever had it
		}
	}
	objects := s.table.own("objects")
	args := []any{s.table.name, name, data}
	set := "data = $3::bytea, bytes = length($3::bytea), sha256 = NULL, rows = NULL, columns = NULL, version = DEFAULT, written_at = now()"
	sql := "INSERT INTO " + objects + " AS o (table_name, name, data, bytes) VALUES ($1, $2, $3::bytea, length($3::bytea))"
	switch version {
	case load.AnyVersion:
		sql += " ON CONFLICT (table_name, name) DO UPDATE SET " + set
	case load.NoVersion:
		sql += " ON CONFLICT DO NOTHING"
	default:
		sql = "UPDATE " + objects + " SET " + set + " WHERE table_name = $1 AND name = $2 AND version = $4::bigint"
		args = append(args, version)
	}
	n, err := s.exec(ctx, sql, args...)
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("cannot write %s: %w", name, load.ErrConflict)
	}
	if name == load.ManifestName {
		return s.tellRun(ctx, data)
	}
	return nil
}

// tellRun writes down for people what a manifest says of its run.
func (s *session) tellRun(ctx context.Context, manifest []byte) error {
	m, err := load.DecodeManifest(manifest)
	if err != nil {
		return nil //nolint:nilerr // what is no manifest tells of no run
	}
	_, err = s.exec(ctx, "INSERT INTO "+s.table.own("runs")+` AS r (table_name, run_id, pipeline, form, range_from, range_to, watermark, rows, rejected)
		VALUES ($1, $2, $3, $4, $5::timestamp, $6::timestamp, $7::timestamp, $8, $9)
		ON CONFLICT (table_name, run_id) DO UPDATE SET watermark = excluded.watermark, rows = excluded.rows, rejected = excluded.rejected`,
		s.table.name, m.RunID, m.Pipeline, m.Form, wall(m.Range.From), wall(m.Range.To), wall(m.Watermark), m.Rows, m.Rejected)
	return err
}

// wall returns a wall-clock time as a parameter, nil for none.
func wall(t load.WallTime) any {
	if t.IsZero() {
		return nil
	}
	return t.Format(wallLayout)
}

// wallLayout is how the server reads wall-clock times.
const wallLayout = time.DateTime

// Delete removes an object. The rows of a part are removed from the table.
func (d *Destination) Delete(ctx context.Context, name string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	return d.with(ctx, "remove", name, func(s *session) error {
		err := s.atomically(ctx, func() error { return s.remove(ctx, name) })
		if noTable(err) { // nothing was ever written
			return nil
		}
		return err
	})
}

// remove removes objects, and the rows of those that are parts.
func (s *session) remove(ctx context.Context, names ...string) error {
	list := textArray(names)
	parts, err := s.query(ctx, "DELETE FROM "+s.table.own("objects")+" WHERE table_name = $1 AND name = ANY($2::text[]) RETURNING version, data IS NULL, columns", s.table.name, list)
	if err != nil {
		return err
	}
	var versions []string
	var id string
	for _, p := range parts {
		if string(p[1]) != "t" {
			continue
		}
		columns, err := decodeHeader(p[2])
		if err != nil {
			return err
		}
		versions, id = append(versions, string(p[0])), columns.ID
	}
	if len(versions) == 0 {
		return nil
	}
	list = textArray(versions)
	// All parts of a table have one column of ids.
	if there, err := s.exists(ctx); err != nil {
		return err
	} else if there {
		_, err = s.exec(ctx, "DELETE FROM "+s.table.String()+" t USING "+s.table.own("ids")+" i WHERE i.part = ANY($1::bigint[]) AND t."+quote(id)+" = i.id", list)
		if err != nil {
			return err
		}
	}
	_, err = s.exec(ctx, "DELETE FROM "+s.table.own("ids")+" WHERE part = ANY($1::bigint[])", list)
	return err
}

// textArray returns a list as the text of an array.
func textArray(list []string) string {
	b := []byte{'{'}
	for i, text := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		for _, c := range []byte(text) {
			if c == '"' || c == '\\' {
				b = append(b, '\\')
			}
			b = append(b, c)
		}
		b = append(b, '"')
	}
	return string(append(b, '}'))
}

// List gives the objects whose names begin with prefix. A part of which rows are missing in
// the table is left out if all are, and listed without bytes otherwise.
func (d *Destination) List(ctx context.Context, prefix string) (objects []load.Object, err error) {
	if err := load.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	err = d.with(ctx, "list", prefix, func(s *session) error {
		objects, err = s.list(ctx, prefix)
		return err
	})
	return objects, err
}

func (s *session) list(ctx context.Context, prefix string) (objects []load.Object, err error) {
	found, err := s.query(ctx, "SELECT name, bytes, data IS NULL, version, rows FROM "+s.table.own("objects")+
		` WHERE table_name = $1 AND starts_with(name, $2) ORDER BY name COLLATE "C"`, s.table.name, prefix)
	if noTable(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var held map[string]int64
	for _, row := range found {
		bytes, err := strconv.ParseInt(string(row[1]), 10, 64)
		if err != nil {
			return nil, err
		}
		if string(row[2]) == "t" {
			if held == nil {
				if held, err = s.rowsHeld(ctx); err != nil {
					return nil, err
				}
			}
			rows, _ := strconv.ParseInt(string(row[4]), 10, 64) // the server wrote it
			n, counted := held[string(row[3])]
			switch {
			case counted && n == rows || !counted && rows == 0 || held[allHeld] == 1:
			case n == 0:
				continue
			default:
				bytes = 0
			}
		}
		objects = append(objects, load.Object{Name: string(row[0]), Bytes: bytes})
	}
	return objects, nil
}

// allHeld is the key of rowsHeld that tells that the table has as many rows as its parts.
const allHeld = "all"

// rowsHeld returns how many rows of each part the table holds. It counts them by part only
// if their sum is not that of the table.
func (s *session) rowsHeld(ctx context.Context) (map[string]int64, error) {
	there, err := s.exists(ctx)
	if err != nil || !there {
		return map[string]int64{}, err
	}
	whole, err := s.query(ctx, "SELECT (SELECT count(*) FROM "+s.table.String()+") = (SELECT coalesce(sum(rows), 0) FROM "+s.table.own("objects")+
		" WHERE table_name = $1 AND data IS NULL)", s.table.name)
	if err != nil {
		return nil, err
	}
	if string(whole[0][0]) == "t" {
		return map[string]int64{allHeld: 1}, nil
	}
	columns, err := s.partColumns(ctx)
	if err != nil || len(columns) == 0 {
		return map[string]int64{}, err
	}
	counts, err := s.query(ctx, "SELECT i.part, count(*) FROM "+s.table.own("ids")+" i JOIN "+s.table.String()+" t ON t."+quote(columns[0].ID)+
		" = i.id WHERE i.table_name = $1 GROUP BY i.part", s.table.name)
	held := make(map[string]int64, len(counts))
	for _, row := range counts {
		held[string(row[0])], _ = strconv.ParseInt(string(row[1]), 10, 64) // the server wrote it
	}
	return held, err
}
