package tables

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
)

// Staging is where prepared objects wait for their commit.
type Staging interface {
	// CheckName refuses what cannot be the reference of a staged object.
	CheckName(p load.Prepared) error
	// Find returns what is staged. The error wraps load.ErrStagedGone if it is gone.
	Find(ctx context.Context, s *Session, p load.Prepared) (Staged, error)
	// Check tells whether an object is staged or committed.
	Check(ctx context.Context, s *Session, p load.Prepared) error
	// Drop removes what is staged, once the transaction is committed.
	Drop(ctx context.Context, s *Session, all ...load.Prepared) error
}

// Staged is what is staged of an object: rows in a table, or bytes.
type Staged struct {
	Table string // that the rows lie in, as SQL names it; "" for bytes
	Part  string // the number of the part there
	Line  []byte // of the header
	Rows  int64
	Data  []byte
}

// Columns of a staging table besides those of the rows: the number of the part, and the place
// of a row in its part.
const (
	PartColumn  = OwnPrefix + "part"
	PlaceColumn = OwnPrefix + "place"
)

// part is a part on its way into the table.
type part struct {
	load.Prepared
	Staged
	header  Header
	version string // of the part's object
}

// Commit makes prepared objects visible within a transaction.
func (s *Session) Commit(ctx context.Context, staging Staging, all ...load.Prepared) error {
	return s.replace(ctx, staging, nil, all)
}

// replace removes objects, and makes prepared ones visible. The rows of parts go into the
// table.
func (s *Session) replace(ctx context.Context, staging Staging, removed []string, all []load.Prepared) error {
	parts, removed, err := s.wanted(ctx, staging, removed, all)
	if err != nil {
		return err
	}
	var headers []Header
	for _, p := range parts {
		if p.Table != "" && !slices.ContainsFunc(headers, func(h Header) bool { return slices.Equal(h.Encode(), p.header.Encode()) }) {
			headers = append(headers, p.header)
		}
	}
	if err := s.Remove(ctx, removed...); err != nil {
		return err
	}
	if err := s.fit(ctx, headers, removed); err != nil {
		return err
	}
	moved := map[string][]part{}
	for _, p := range parts {
		if err := s.insert(ctx, &p); err != nil {
			return err
		}
		if p.Table != "" {
			moved[p.Table] = append(moved[p.Table], p)
		}
	}
	for _, these := range moved {
		if err := s.move(ctx, these); err != nil {
			return err
		}
	}
	return staging.Drop(ctx, s, all...)
}

// wanted returns the objects that are not visible yet, and what is to be removed for them.
func (s *Session) wanted(ctx context.Context, staging Staging, removed []string, all []load.Prepared) (parts []part, _ []string, err error) {
	for _, p := range all {
		there, same, err := s.Visible(ctx, p)
		there = there && !slices.Contains(removed, p.Name)
		switch {
		case err != nil:
			return nil, nil, err
		case there && same:
			continue
		case there && !p.Replace:
			return nil, nil, fmt.Errorf("cannot commit %s: %w", p.Name, load.ErrConflict)
		}
		staged, err := staging.Find(ctx, s, p)
		if err != nil {
			return nil, nil, err
		}
		if there {
			removed = append(removed, p.Name)
		}
		one := part{Prepared: p, Staged: staged}
		if staged.Table != "" {
			if one.header, err = DecodeHeader(staged.Line); err != nil {
				return nil, nil, err
			}
		}
		parts = append(parts, one)
	}
	return parts, removed, nil
}

// insert makes an object. The rows of a part are still to be moved.
func (s *Session) insert(ctx context.Context, p *part) error {
	var rows, line, data any
	if p.Table != "" {
		rows, line = p.Rows, string(p.Line)
	} else {
		data = append([]byte{}, p.Data...)
	}
	made, err := s.Query(ctx, "INSERT INTO "+s.Table.Own("objects")+" (table_name, name, bytes, sha256, rows, columns, data) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING version",
		s.Table.Name, p.Name, p.Bytes, p.SHA256, rows, line, data)
	if err == nil {
		p.version = string(made[0][0])
	}
	return err
}

// move moves the rows of parts that lie in one staging table into the table, and notes which
// rows each part has. The staging table is read once.
func (s *Session) move(ctx context.Context, parts []part) error {
	h, from := parts[0].header, parts[0].Table
	var rows int64
	numbers, begins, versions := make([]string, len(parts)), make([]string, len(parts)), make([]string, len(parts))
	for i, p := range parts {
		rows += p.Rows
		numbers[i], versions[i] = p.Part, p.version
		if key, err := load.ParsePartName(p.Name); err == nil && !key.From.IsZero() {
			begins[i] = key.From.Format(wallLayout)
		}
	}
	n, err := s.Exec(ctx, "INSERT INTO "+s.Table.String()+" ("+h.Names("")+") SELECT "+h.Names("")+" FROM "+from+" WHERE "+Quote(PartColumn)+" = ANY($1::text[]::bigint[])", numbers)
	if err != nil && s.Dialect.NoTable(err) || err == nil && n != rows {
		return fmt.Errorf("cannot commit %s: %w", parts[0].Name, load.ErrStagedGone) // the server crashed, and emptied what is not logged
	}
	if err != nil {
		return err
	}
	place, group := Quote(PlaceColumn), ""
	if h.Place != "" { // several rows have one id
		place, group = "min("+place+")", " GROUP BY 2, 3, 4"
	}
	_, err = s.Exec(ctx, strings.Join([]string{
		"INSERT INTO", s.Table.Own("ids"), "(table_name, id, part_from, part, place) SELECT $1, s." + Quote(h.ID) + ", nullif(p.begins, '')::timestamp, p.version,", place,
		"FROM", from, "s JOIN (SELECT unnest($2::text[]::bigint[]) AS part, unnest($3::text[]) AS begins, unnest($4::text[]::bigint[]) AS version) p ON s." + Quote(PartColumn), "= p.part", group,
	}, " "), s.Table.Name, numbers, begins, versions)
	return err
}

// Visible tells whether an object has the final name, and whether it is what was prepared.
func (s *Session) Visible(ctx context.Context, p load.Prepared) (there, same bool, err error) {
	found, err := s.Query(ctx, "SELECT bytes = $3 AND coalesce(sha256, '') = $4 FROM "+s.Table.Own("objects")+
		" WHERE table_name = $1 AND name = $2", s.Table.Name, p.Name, p.Bytes, p.SHA256)
	if err != nil && s.Dialect.NoTable(err) {
		return false, false, nil
	}
	return len(found) > 0, len(found) > 0 && string(found[0][0]) == "t", err
}

// Committed returns nil if an object that is not staged has the final name. Otherwise its
// error wraps load.ErrStagedGone.
func (s *Session) Committed(ctx context.Context, p load.Prepared) error {
	_, same, err := s.Visible(ctx, p)
	if err == nil && !same {
		err = Gone(p)
	}
	return err
}

// Gone says that an object is not staged any more.
func Gone(p load.Prepared) error {
	return fmt.Errorf("%s cannot be committed: %w", p.Name, load.ErrStagedGone)
}
