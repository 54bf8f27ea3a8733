package tables

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/formetl/formetl/load"
)

// Get reads an object. data is nil for a part, whose data lie in the table.
func (s *Session) Get(ctx context.Context, name string) (data []byte, version string, err error) {
	found, err := s.QueryBytes(ctx, "SELECT version::text, data FROM "+s.Table.Own("objects")+" WHERE table_name = $1 AND name = $2", s.Table.Name, name)
	if err != nil && !s.Dialect.NoTable(err) {
		return nil, "", err
	}
	if len(found) == 0 {
		return nil, "", fmt.Errorf("cannot read %s: %w", name, load.ErrNotExist)
	}
	return found[0][1], string(found[0][0]), nil
}

// ReadWhole reads all of an object through a destination.
func ReadWhole(ctx context.Context, d load.Opener, name string) ([]byte, error) {
	object, err := d.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(object)
	return data, errors.Join(err, object.Close())
}

// CheckScope refuses the scope of a lease at a destination where no object can have its name.
func CheckScope(ctx context.Context, d load.Store, scope, path string) error {
	if scope == "" {
		return nil
	}
	if err := load.CheckObjectName(scope); err != nil {
		return err
	}
	below, err := d.List(ctx, scope+"/")
	if err == nil && len(below) > 0 {
		err = &load.CreateError{Op: "create", Path: path, Hint: "choose another name", Err: errors.New("it is a folder")}
	}
	return err
}

// Put writes an object if it has the version.
func (s *Session) Put(ctx context.Context, name string, data []byte, version string) error {
	if data == nil {
		data = []byte{}
	}
	if version != load.NoVersion && version != load.AnyVersion {
		if _, err := strconv.ParseInt(version, 10, 64); err != nil {
			return fmt.Errorf("cannot write %s: %w", name, load.ErrConflict) // no object ever had it
		}
	}
	objects := s.Table.Own("objects")
	sum := sha256.Sum256(data)
	args := []any{s.Table.Name, name, data, len(data), hex.EncodeToString(sum[:])}
	set := "data = $3::bytea, bytes = $4::bigint, sha256 = $5, rows = NULL, columns = NULL, version = DEFAULT, written_at = now()"
	sql := "INSERT INTO " + objects + " AS o (table_name, name, data, bytes, sha256) VALUES ($1, $2, $3::bytea, $4::bigint, $5)"
	switch version {
	case load.AnyVersion:
		sql += " ON CONFLICT (table_name, name) DO UPDATE SET " + set
	case load.NoVersion:
		sql += " ON CONFLICT DO NOTHING"
	default:
		sql = "UPDATE " + objects + " SET " + set + " WHERE table_name = $1 AND name = $2 AND version = $6::bigint"
		args = append(args, version)
	}
	n, err := s.Exec(ctx, sql, args...)
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
func (s *Session) tellRun(ctx context.Context, manifest []byte) error {
	m, err := load.DecodeManifest(manifest)
	if err != nil {
		return nil //nolint:nilerr // what is no manifest tells of no run
	}
	_, err = s.Exec(ctx, "INSERT INTO "+s.Table.Own("runs")+` AS r (table_name, run_id, pipeline, form, range_from, range_to, watermark, rows, rejected)
		VALUES ($1, $2, $3, $4, $5::timestamp, $6::timestamp, $7::timestamp, $8, $9)
		ON CONFLICT (table_name, run_id) DO UPDATE SET watermark = excluded.watermark, rows = excluded.rows, rejected = excluded.rejected`,
		s.Table.Name, m.RunID, m.Pipeline, m.Form, wall(m.Range.From), wall(m.Range.To), wall(m.Watermark), m.Rows, m.Rejected)
	return err
}

// wall returns a wall-clock time as a parameter, nil for none.
func wall(t load.WallTime) any {
	if t.IsZero() {
		return nil
	}
	return t.Format(wallLayout)
}

// wallLayout is how a database reads wall-clock times.
const wallLayout = time.DateTime

// Remove removes objects, and the rows of those that are parts.
func (s *Session) Remove(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	parts, err := s.Query(ctx, "DELETE FROM "+s.Table.Own("objects")+" WHERE table_name = $1 AND name = ANY($2::text[]) RETURNING version, data IS NULL, columns", s.Table.Name, names)
	if err != nil {
		return err
	}
	var versions []string
	var id string
	for _, p := range parts {
		if string(p[1]) != "t" {
			continue
		}
		columns, err := DecodeHeader(p[2])
		if err != nil {
			return err
		}
		versions, id = append(versions, string(p[0])), columns.ID
	}
	if len(versions) == 0 {
		return nil
	}
	// All parts of a table have one column of ids.
	if there, err := s.exists(ctx); err != nil {
		return err
	} else if there {
		_, err = s.Exec(ctx, "DELETE FROM "+s.Table.String()+" t USING "+s.Table.Own("ids")+" i WHERE i.part = ANY($1::text[]::bigint[]) AND t."+Quote(id)+" = i.id", versions)
		if err != nil {
			return err
		}
	}
	_, err = s.Exec(ctx, "DELETE FROM "+s.Table.Own("ids")+" WHERE part = ANY($1::text[]::bigint[])", versions)
	return err
}

// List gives the objects whose names begin with prefix. A part of which rows are missing in
// the table is left out if all are, and listed without bytes otherwise.
func (s *Session) List(ctx context.Context, prefix string) (objects []load.Object, err error) {
	found, err := s.Query(ctx, "SELECT name, bytes, data IS NULL, version, rows FROM "+s.Table.Own("objects")+
		` WHERE table_name = $1 AND starts_with(name, $2) ORDER BY name COLLATE "C"`, s.Table.Name, prefix)
	if err != nil && s.Dialect.NoTable(err) {
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
func (s *Session) rowsHeld(ctx context.Context) (map[string]int64, error) {
	there, err := s.exists(ctx)
	if err != nil || !there {
		return map[string]int64{}, err
	}
	whole, err := s.Query(ctx, "SELECT (SELECT count(*) FROM "+s.Table.String()+") = (SELECT coalesce(sum(rows), 0) FROM "+s.Table.Own("objects")+
		" WHERE table_name = $1 AND data IS NULL)", s.Table.Name)
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
	counts, err := s.Query(ctx, "SELECT i.part, count(*) FROM "+s.Table.Own("ids")+" i JOIN "+s.Table.String()+" t ON t."+Quote(columns[0].ID)+
		" = i.id WHERE i.table_name = $1 GROUP BY i.part", s.Table.Name)
	held := make(map[string]int64, len(counts))
	for _, row := range counts {
		held[string(row[0])], _ = strconv.ParseInt(string(row[1]), 10, 64) // the server wrote it
	}
	return held, err
}

// rowsOf returns the query for the rows of a part in their order. version is that of its
// object, as the database gave it.
func (s *Session) rowsOf(h Header, version string) string {
	order := "i.place"
	if h.Place != "" {
		order += ", t." + Quote(h.Place)
	}
	return "SELECT " + h.Names("t.") + " FROM " + s.Table.Own("ids") + " i JOIN " + s.Table.String() + " t ON t." + Quote(h.ID) +
		" = i.id WHERE i.part = " + version + " ORDER BY " + order
}

// Find returns an object, or else the query for its rows. The error wraps load.ErrNotExist if
// the object or the whole table is missing.
func (s *Session) Find(ctx context.Context, name string) (found Found, err error) {
	missing := fmt.Errorf("cannot read %s: %w", name, load.ErrNotExist)
	rows, err := s.QueryBytes(ctx, "SELECT version::text, columns, data FROM "+s.Table.Own("objects")+" WHERE table_name = $1 AND name = $2", s.Table.Name, name)
	if err != nil && s.Dialect.NoTable(err) || err == nil && len(rows) == 0 {
		return found, missing
	}
	if err != nil {
		return found, err
	}
	found = Found{Version: string(rows[0][0]), Line: rows[0][1], Data: rows[0][2]}
	if found.Data != nil {
		return found, nil
	}
	h, err := DecodeHeader(found.Line)
	if err != nil {
		return found, err
	}
	there, err := s.exists(ctx)
	if err == nil && !there {
		err = missing
	}
	if err != nil {
		return found, err
	}
	found.Header, found.Rows = h, s.rowsOf(h, found.Version)
	return found, nil
}

// Found is an object: its data, or the query for the rows of a part, which follow its line.
type Found struct {
	Version, Rows string
	Header        Header
	Line, Data    []byte
}
