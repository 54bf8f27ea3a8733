package readback

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/formetl/formetl/load/idset"
)

// Table reads a table of PostgreSQL as if it were a dataset of NDJSON: its manifest, a file
// for each part, the sets of ids and the dead letters. list is the exploded list that it
// holds, "" for results. Rows that are in no part are in stray.ndjson. Each row, also one
// whose result vanished, is in _rows/ too: who wrote it, an empty line, and what it holds.
func Table(dsn, table, list string, zone *time.Location) (map[string][]byte, error) {
	ctx := context.Background()
	files := map[string][]byte{}
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close(ctx) }() // it only read
	dataset := strings.TrimSuffix(table, "__"+list)
	var made bool
	var text []byte
	if err := c.QueryRow(ctx, "SELECT to_regclass('formetl.datasets') IS NOT NULL").Scan(&made); err != nil || !made {
		return files, err
	}
	err = c.QueryRow(ctx, "SELECT coalesce((SELECT manifest::text FROM formetl.datasets WHERE dataset = $1), '')", dataset).Scan(&text)
	if err != nil || len(text) == 0 {
		return files, err
	}
	m := &Manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	partOf := map[int64]string{}
	parts, _ := c.Query(ctx, `SELECT part, coalesce(range_from, '0001-01-01'), coalesce(range_to, '0001-01-01'), rows, coalesce(min_id, 0), coalesce(max_id, 0), undated, ids,
		CASE WHEN rejected > 0 THEN md5(part) ELSE '' END FROM formetl.parts WHERE dataset = $1 ORDER BY part`, dataset)
	var p Part
	var set []byte
	if _, err := pgx.ForEachRow(parts, []any{&p.Path, &p.From.Time, &p.To.Time, &p.Rows, &p.MinID, &p.MaxID, &p.Undated, &set, &p.Letters}, func() error {
		sum := sha256.Sum256(set)
		p.Path, p.IDs = strings.ReplaceAll(p.Path, "/", " to ")+".ndjson", hex.EncodeToString(sum[:])
		files[p.Path], files["_ids/"+p.IDs+".ids"] = nil, []byte(string(set))
		m.Parts = append(m.Parts, p)
		ids, err := idset.Decode(set)
		for id := range ids.All() {
			partOf[id] = p.Path
		}
		return err
	}); err != nil {
		return nil, err
	}
	letters, _ := c.Query(ctx, "SELECT '_rejects/' || md5(part) || '.jsonl', reject::text FROM formetl.rejects WHERE dataset = $1 ORDER BY part, line", dataset)
	var name, letter string
	if _, err := pgx.ForEachRow(letters, []any{&name, &letter}, func() error {
		files[name] = append(files[name], letter+"\n"...)
		return nil
	}); err != nil {
		return nil, err
	}
	layout, key := Layout{zone, m.Schema}, ""
	for _, c := range m.Schema {
		if c.From == "result_id" {
			key = c.Name
		}
	}
	counts, order := map[string]int64{}, ""
	if list != "" {
		m.Schema, order = layout.exploded(key, list), `, "position"`
	}
	rows, err := c.Query(ctx, "SELECT xmin::text AS xmin, * FROM "+pgx.Identifier(strings.SplitN(table, ".", 2)).Sanitize()+" ORDER BY "+pgx.Identifier{key}.Sanitize()+order)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return nil, err
		}
		row := layout.rowOf(rows.FieldDescriptions(), values)
		wrote := fmt.Sprintf("xmin=%s loaded_at=%v run_id=%v\n\n", row["xmin"], row["loaded_at"], row["run_id"])
		_, gone := row["deleted_at"]
		for _, extra := range []string{"xmin", "loaded_at", "run_id"} {
			delete(row, extra)
		}
		id, _ := row[key].(int64)
		line, _ := json.Marshal(row) // texts, numbers and lists of them
		files[fmt.Sprintf("_rows/%d.%v", id, row["position"])] = []byte(wrote + string(line))
		if gone {
			continue
		}
		part, known := partOf[id]
		if !known {
			part = "stray.ndjson"
		}
		files[part] = append(append(files[part], line...), '\n')
		counts[part]++
	}
	if err := rows.Err(); err != nil && !strings.Contains(err.Error(), "42P01") { // a table that is not there has no rows
		return nil, err
	}
	if list != "" {
		m.Rows = 0
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		if list != "" { // a manifest counts results
			p.Rows = counts[p.Path]
			m.Rows += p.Rows
		}
		sum := sha256.Sum256(files[p.Path])
		p.Bytes, p.SHA256 = int64(len(files[p.Path])), hex.EncodeToString(sum[:])
	}
	files[SuccessName] = []byte(m.RunID + "\n")
	files[ManifestName], err = json.Marshal(m)
	return files, err
}

// exploded are the columns of the table of a list.
func (l Layout) exploded(id, list string) (columns []Column) {
	for _, c := range l.Columns {
		if c.Name == list {
			element := strings.TrimSuffix(strings.TrimPrefix(c.Type, "list<"), ">")
			columns = []Column{{id, "int64", "result_id"}, {"position", "int64", c.From}, {list, element, c.From}}
		}
	}
	return columns
}

// rowOf is a row of a table as JSON has it, without nulls.
func (l Layout) rowOf(fields []pgconn.FieldDescription, values []any) map[string]any {
	row := map[string]any{}
	for i, f := range fields {
		switch v := values[i].(type) {
		case nil:
		case time.Time:
			if row[f.Name] = l.stamp(v); f.DataTypeOID == pgtype.DateOID {
				row[f.Name] = v.Format(time.DateOnly)
			}
		default:
			row[f.Name] = v
		}
	}
	return row
}
