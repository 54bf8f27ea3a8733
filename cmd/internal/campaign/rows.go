package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/load/loadtest"
)

// row is a row by its columns. A value is a string, or a []any of strings for a list. Those
// that are null are left out. Typed values are written as in NDJSON: 5, 2026-01-31, and
// timestamps as RFC 3339 with the zone's offset.
type row map[string]any

// readRows reads the rows of a data file, whose name tells its format. It shares no code
// with the encoders but the libraries beneath them, and it is strict: a file that is cut is
// an error. load/loadtest has DuckDB read Parquet, which shares nothing with the encoder.
func readRows(name string, data []byte, columns []load.Column, zone *time.Location) (rows []row, err error) {
	switch path.Ext(name) {
	case ".csv":
		return readCSV(data)
	case ".ndjson":
		return readLines(data)
	case ".parquet":
		if _, data, err = loadtest.ParquetLines(data); err != nil {
			return nil, err
		}
		rows, err = readLines(data)
		for _, r := range rows {
			r.stamp(columns, zone)
		}
		return rows, err
	}
	return nil, fmt.Errorf("%s is of no format that is known", name)
}

// readLines reads NDJSON.
func readLines(data []byte) (rows []row, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for err == nil {
		r := row{}
		if err = d.Decode(&r); err == nil {
			r.tidy()
			rows = append(rows, r)
		}
	}
	if ends := bytes.Count(data, []byte("\n")); !errors.Is(err, io.EOF) || ends != len(rows) {
		return nil, fmt.Errorf("row %d of %d lines: %w", len(rows)+1, ends, err)
	}
	return rows, nil
}

// tidy makes numbers texts, and leaves null out.
func (r row) tidy() {
	for name, value := range r {
		switch v := value.(type) {
		case nil:
			delete(r, name)
		case json.Number:
			r[name] = v.String()
		}
	}
}

// stamp writes timestamps, of whatever offset, as the text formats do.
func (r row) stamp(columns []load.Column, zone *time.Location) {
	for _, c := range columns {
		text, _ := r[c.Name].(string)
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z0700"} {
			if at, err := time.Parse(layout, text); c.Type == "timestamp" && err == nil {
				r[c.Name] = at.In(zone).Format(time.RFC3339Nano)
			}
		}
	}
}

// readCSV reads CSV, where null is empty without quotes. A list is the text that joined makes
// of it.
func readCSV(data []byte) (rows []row, err error) {
	all, err := loadtest.ParseCSV(string(data), ",")
	if err == nil && len(all) == 0 {
		err = errors.New("it has no heading")
	}
	if err != nil {
		return nil, err
	}
	for _, fields := range all[1:] {
		if len(fields) != len(all[0]) {
			return nil, fmt.Errorf("row %d has %d fields of %d", len(rows)+1, len(fields), len(all[0]))
		}
		record := row{}
		for i, f := range fields {
			if f.Quoted || f.Text != "" {
				record[all[0][i].Text] = f.Text
			}
		}
		rows = append(rows, record)
	}
	return rows, nil
}

// joined is a list as CSV shows it, and several values that were not expected.
func joined(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = strings.NewReplacer(`\`, `\\`, `|`, `\|`).Replace(v.(string))
	}
	return strings.Join(texts, "|")
}

// table reads a table of PostgreSQL as if it were a dataset, with a part for each that the
// server knows of. What it holds of results that vanished is in stored alone.
func (l *look) table(zone *time.Location, o *output) error {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, o.dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }() // it only read
	made, order := false, ""
	if err := c.QueryRow(ctx, "SELECT to_regclass('formetl.datasets') IS NOT NULL AND to_regclass($1) IS NOT NULL", o.dir).Scan(&made); err != nil || !made {
		return err
	}
	if o.explode != "" {
		order = " ORDER BY t.position"
	}
	var text []byte
	if err := c.QueryRow(ctx, `SELECT json_build_object(
		'manifest', (SELECT manifest FROM formetl.datasets WHERE dataset = $1),
		'parts', (SELECT json_agg(json_build_object('ids', encode(ids, 'base64'), 'part', json_build_object('path', part, 'rows', rows, 'min_id', min_id, 'max_id', max_id,
			'undated', undated, 'from', to_char(range_from, 'YYYY-MM-DD HH24:MI:SS'), 'to', to_char(range_to, 'YYYY-MM-DD HH24:MI:SS'))) ORDER BY part) FROM formetl.parts WHERE dataset = $1),
		'rejects', (SELECT json_agg(reject) FROM formetl.rejects WHERE dataset = $1),
		'rows', (SELECT json_agg(t`+order+`) FROM (SELECT xmin::text AS xmin, * FROM `+o.dir+`) t))`, strings.TrimSuffix(o.dir, "__"+o.explode)).Scan(&text); err != nil {
		return err
	}
	var all struct {
		Manifest *load.Manifest
		Parts    []struct {
			Part load.Part
			IDs  []byte
		}
		Rejects, Rows []row
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&all); err != nil || all.Manifest == nil {
		return err
	}
	l.manifest, l.marked = all.Manifest, true
	l.reject(all.Rejects)
	if o.explode != "" { // its manifest counts results
		l.manifest.Rows = 0
	}
	partOf, inPart, key := map[any]string{}, map[string][]row{}, keyOf(l.manifest.Schema)
	for _, p := range all.Parts {
		if l.ids[p.Part.Path], err = idset.Decode(p.IDs); err != nil {
			return err
		}
		for id := range l.ids[p.Part.Path].All() {
			partOf[strconv.FormatInt(id, 10)] = p.Part.Path
		}
	}
	for _, r := range all.Rows {
		r.tidy()
		r.stamp(l.manifest.Schema, zone)
		run, _ := r["run_id"].(string)
		version, vanished := fmt.Sprint(r["xmin"], r["loaded_at"], run), r["deleted_at"] != nil
		for _, extra := range []string{"xmin", "loaded_at", "run_id"} {
			delete(r, extra)
		}
		l.stored[fmt.Sprint(r[key], " ", r["position"])] = stored{version, run, fmt.Sprint(r)}
		part, known := partOf[r[key]]
		switch {
		case vanished:
		case !known:
			return fmt.Errorf("%s holds result %s, which is in no part", o, r[key])
		default:
			inPart[part] = append(inPart[part], r)
		}
	}
	for _, p := range all.Parts {
		rows := inPart[p.Part.Path]
		if o.explode != "" {
			p.Part.Rows = int64(len(rows))
			l.manifest.Rows += p.Part.Rows
		}
		p.Part.SHA256 = fmt.Sprintf("%v %x", rows, p.IDs) // equal for equal parts
		l.manifest.Parts = append(l.manifest.Parts, p.Part)
		if err := l.add(p.Part, rows, o); err != nil {
			return fmt.Errorf("the part %s of %s: %w", p.Part.Path, o, err)
		}
	}
	return nil
}
