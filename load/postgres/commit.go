package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/formetl/formetl/load"
)

// Commit makes a prepared object visible. The rows of a part go into the table.
func (d *Destination) Commit(ctx context.Context, p load.Prepared) error {
	if err := checkStaged(p); err != nil {
		return err
	}
	return d.change(ctx, "commit", p.Name, func(s *session) error {
		if err := s.locks(ctx); err != nil {
			return err
		}
		return s.commit(ctx, p)
	})
}

// commit does Commit within a transaction that holds the table's lock.
func (s *session) commit(ctx context.Context, p load.Prepared) error {
	staged, err := s.query(ctx, "SELECT columns, rows FROM "+s.table.own("staged")+" WHERE id = $1 AND table_name = $2 AND bytes = $3 AND sha256 = $4 FOR UPDATE",
		p.Staged, s.table.name, p.Bytes, p.SHA256)
	if err != nil {
		return err
	}
	there, same, err := s.visible(ctx, p)
	switch {
	case err != nil:
		return err
	case len(staged) > 0 && (p.Replace || !there):
		if there {
			if err := s.remove(ctx, p.Name); err != nil {
				return err
			}
		}
		if staged[0][0] == nil {
			err = s.commitPlain(ctx, p)
		} else {
			err = s.commitRows(ctx, p, staged[0][0], string(staged[0][1]))
		}
		if err != nil {
			return err
		}
	case same:
	case there && !p.Replace:
		return fmt.Errorf("cannot commit %s: %w", p.Name, load.ErrConflict)
	default:
		return fmt.Errorf("cannot commit %s: %w", p.Name, load.ErrStagedGone)
	}
	return s.unstage(ctx, p.Staged)
}

// commitPlain makes bytes that are no rows an object.
func (s *session) commitPlain(ctx context.Context, p load.Prepared) error {
	_, err := s.exec(ctx, "INSERT INTO "+s.table.own("objects")+" (table_name, name, bytes, sha256, data) SELECT table_name, name, bytes, sha256, data FROM "+
		s.table.own("staged")+" WHERE id = $1", p.Staged)
	return err
}

// commitRows moves staged rows into the table, and notes which rows the part has.
func (s *session) commitRows(ctx context.Context, p load.Prepared, line []byte, rows string) error {
	h, err := decodeHeader(line)
	if err != nil {
		return err
	}
	if err := s.fit(ctx, h); err != nil {
		return err
	}
	n, err := s.exec(ctx, "INSERT INTO "+s.table.String()+" ("+h.names("")+") SELECT "+h.names("")+" FROM "+s.table.staging(p.Staged))
	if noTable(err) || err == nil && strconv.FormatInt(n, 10) != rows {
		return fmt.Errorf("cannot commit %s: %w", p.Name, load.ErrStagedGone) // the server crashed, and emptied what is not logged
	}
	if err != nil {
		return err
	}
	made, err := s.query(ctx, "INSERT INTO "+s.table.own("objects")+" (table_name, name, bytes, sha256, rows, columns) VALUES ($1, $2, $3, $4, $5, $6) RETURNING version",
		s.table.name, p.Name, p.Bytes, p.SHA256, rows, string(line))
	if err != nil {
		return err
	}
	var from any
	if key, err := load.ParsePartName(p.Name); err == nil {
		from = wall(load.Wall(key.From))
	}
	ids := "SELECT $1, " + quote(h.ID) + ", $2::timestamp, $3::bigint, " + quote(placeColumn) + " FROM " + s.table.staging(p.Staged)
	if h.Place != "" { // several rows have one id
		ids = "SELECT $1, " + quote(h.ID) + ", $2::timestamp, $3::bigint, min(" + quote(placeColumn) + ") FROM " + s.table.staging(p.Staged) + " GROUP BY 2"
	}
	_, err = s.exec(ctx, "INSERT INTO "+s.table.own("ids")+" (table_name, id, part_from, part, place) "+ids, s.table.name, from, string(made[0][0]))
	return err
}
