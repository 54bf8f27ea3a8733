package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/formetl/formetl/load"
)

// Commit makes a prepared object visible. The rows of a part go into the table.
func (d *Destination) Commit(ctx context.Context, p load.Prepared) error {
	if err := checkStaged(p); err != nil {
		return err
	}
	return d.change(ctx, "commit", p.Name, func(s *session) error {
		if err := s.locks(ctx, committing); err != nil {
			return err
		}
		rows, err := s.commit(ctx, p)
		if err != nil || rows == nil {
			return err
		}
		return s.move(ctx, []stagedRows{*rows})
	})
}

// stagedRows are the rows of a part that are to be moved into the table.
type stagedRows struct {
	p       load.Prepared
	header  header
	staging string // the staging table
	part    string // their number there
	rows    int64
	version string // of the part's object
	from    string // where the part begins, "" for nowhere
}

// commit does Commit within a transaction that holds the table's lock. It makes the object
// of a part, and returns the rows that are still to be moved, nil for none.
func (s *session) commit(ctx context.Context, p load.Prepared) (*stagedRows, error) {
	staged, err := s.query(ctx, "SELECT staging, columns, part, rows FROM "+s.table.own("staged")+" WHERE id = $1 AND table_name = $2 AND bytes = $3 AND sha256 = $4 FOR UPDATE",
		p.Staged, s.table.name, p.Bytes, p.SHA256)
	if err != nil {
		return nil, err
	}
	there, same, err := s.visible(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case same:
		return nil, s.unstage(ctx, p.Staged)
	case there && !p.Replace:
		return nil, fmt.Errorf("cannot commit %s: %w", p.Name, load.ErrConflict)
	case len(staged) == 0:
		return nil, fmt.Errorf("cannot commit %s: %w", p.Name, load.ErrStagedGone)
	case there:
		if err := s.remove(ctx, p.Name); err != nil {
			return nil, err
		}
	}
	if staged[0][0] == nil {
		return nil, s.commitPlain(ctx, p)
	}
	r := &stagedRows{p: p, staging: string(staged[0][0]), part: string(staged[0][2])}
	if r.header, err = decodeHeader(staged[0][1]); err == nil {
		r.rows, err = strconv.ParseInt(string(staged[0][3]), 10, 64)
	}
	if err == nil {
		err = s.fit(ctx, r.header)
	}
	if err != nil {
		return nil, err
	}
	made, err := s.query(ctx, "INSERT INTO "+s.table.own("objects")+" (table_name, name, bytes, sha256, rows, columns) VALUES ($1, $2, $3, $4, $5, $6) RETURNING version",
		s.table.name, p.Name, p.Bytes, p.SHA256, r.rows, string(staged[0][1]))
	if err != nil {
		return nil, err
	}
	r.version = string(made[0][0])
	if key, err := load.ParsePartName(p.Name); err == nil && !key.From.IsZero() {
		r.from = key.From.Format(wallLayout)
	}
	return r, nil
}

// commitPlain makes bytes that are no rows an object.
func (s *session) commitPlain(ctx context.Context, p load.Prepared) error {
	_, err := s.exec(ctx, "INSERT INTO "+s.table.own("objects")+" (table_name, name, bytes, sha256, data) SELECT table_name, name, bytes, sha256, data FROM "+
		s.table.own("staged")+" WHERE id = $1", p.Staged)
	if err != nil {
		return err
	}
	return s.unstage(ctx, p.Staged)
}

// move moves staged rows into the table, and notes which rows each part has. The parts of a
// run lie in one staging table, so that it is read once.
func (s *session) move(ctx context.Context, all []stagedRows) error {
	for len(all) > 0 {
		var these, others []stagedRows
		for _, r := range all {
			if r.staging == all[0].staging {
				these = append(these, r)
			} else {
				others = append(others, r)
			}
		}
		if err := s.moveFrom(ctx, these); err != nil {
			return err
		}
		all = others
	}
	return nil
}

// moveFrom moves the rows of parts that lie in one staging table, and so have one header.
func (s *session) moveFrom(ctx context.Context, parts []stagedRows) error {
	h, staging := parts[0].header, s.table.own(parts[0].staging)
	var rows int64
	numbers, froms, versions, ids := make([]string, len(parts)), make([]string, len(parts)), make([]string, len(parts)), make([]string, len(parts))
	for i, r := range parts {
		rows += r.rows
		numbers[i], froms[i], versions[i], ids[i] = r.part, r.from, r.version, r.p.Staged
	}
	n, err := s.exec(ctx, "INSERT INTO "+s.table.String()+" ("+h.names("")+") SELECT "+h.names("")+" FROM "+staging+" WHERE "+quote(partColumn)+" = ANY($1::bigint[])", textArray(numbers))
	if noTable(err) || err == nil && n != rows {
		return fmt.Errorf("cannot commit %s: %w", parts[0].p.Name, load.ErrStagedGone) // the server crashed, and emptied what is not logged
	}
	if err != nil {
		return err
	}
	place, group := quote(placeColumn), ""
	if h.Place != "" { // several rows have one id
		place, group = "min("+place+")", " GROUP BY 2, 3, 4"
	}
	_, err = s.exec(ctx, strings.Join([]string{
		"INSERT INTO", s.table.own("ids"), "(table_name, id, part_from, part, place) SELECT $1, s." + quote(h.ID) + ", nullif(p.begins, '')::timestamp, p.version,", place,
		"FROM", staging, "s JOIN unnest($2::bigint[], $3::text[], $4::bigint[]) AS p(part, begins, version) ON s." + quote(partColumn), "= p.part", group,
	}, " "), s.table.name, textArray(numbers), textArray(froms), textArray(versions))
	if err != nil {
		return err
	}
	return s.unstage(ctx, ids...)
}
