package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
)

// Leftovers returns what is staged, of live runs too.
func (d *Destination) Leftovers(ctx context.Context) (left []load.Leftover, err error) {
	err = d.with(ctx, "list", load.ControlFolder, func(s *session) error {
		rows, err := s.Query(ctx, "SELECT id, run_id, name, bytes, extract(epoch FROM begun_at)::bigint, part FROM "+s.Table.Own("staged")+" WHERE table_name = $1 ORDER BY id", s.Table.Name)
		if noTable(err) {
			return nil
		}
		for _, row := range rows {
			l := load.Leftover{
				Kind: load.StagedFile, Run: string(row[1]), Name: string(row[2]), Bytes: -1, Ref: string(row[0]),
				Path: d.address + "/" + d.table.Schema + "." + tables.OwnPrefix + "staged/" + string(row[5]),
			}
			if row[3] != nil {
				l.Bytes, _ = strconv.ParseInt(string(row[3]), 10, 64) // the server wrote it
			}
			seconds, _ := strconv.ParseInt(string(row[4]), 10, 64) // as above
			l.Since = time.Unix(seconds, 0)
			left = append(left, l)
		}
		return err
	})
	return left, err
}

// Remove removes what is staged.
func (d *Destination) Remove(ctx context.Context, l load.Leftover) error {
	if !stagedShape.MatchString(l.Ref) {
		return &load.NameError{Name: l.Ref, Problem: "it is nothing staged of a database"}
	}
	return d.drop(ctx, l.Ref)
}
