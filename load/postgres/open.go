package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/formetl/formetl/load"
)

// Open reads an object from its beginning. The rows of a part are read from the table, and
// give the bytes that were staged unless somebody changed them.
func (d *Destination) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := load.CheckName(name); err != nil {
		return nil, err
	}
	var line, data []byte
	var sql string
	err := d.with(ctx, "read", name, func(s *session) error {
		found, err := s.queryBytes(ctx, "SELECT version::text, columns, data FROM "+s.table.own("objects")+" WHERE table_name = $1 AND name = $2", s.table.name, name)
		if noTable(err) || err == nil && len(found) == 0 {
			return fmt.Errorf("cannot read %s: %w", name, load.ErrNotExist)
		}
		if err != nil {
			return err
		}
		if line, data = found[0][1], found[0][2]; data != nil {
			return nil
		}
		h, err := decodeHeader(line)
		if err != nil {
			return err
		}
		if there, err := s.exists(ctx); err != nil {
			return err
		} else if !there {
			return fmt.Errorf("cannot read %s, because the table is gone: %w", name, load.ErrNotExist)
		}
		sql = s.rowsOf(h, string(found[0][0]))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if data != nil {
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	ctx, stop := context.WithCancel(ctx)
	from, to := io.Pipe()
	o := &opened{Reader: io.MultiReader(bytes.NewReader(line), from), from: from, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		err := d.with(ctx, "read", name, func(s *session) error {
			_, err := s.conn.CopyTo(ctx, to, sql)
			return err
		})
		_ = to.CloseWithError(err)
	}()
	return o, nil
}

// rowsOf returns the statement that prints the rows of a part in their order. version is a
// number that the server gave.
func (s *session) rowsOf(h header, version string) string {
	order := "i.place"
	if h.Place != "" {
		order += ", t." + quote(h.Place)
	}
	return "COPY (SELECT " + h.names("t.") + " FROM " + s.table.own("ids") + " i JOIN " + s.table.String() + " t ON t." + quote(h.ID) +
		" = i.id WHERE i.part = " + version + " ORDER BY " + order + ") TO STDOUT (FORMAT binary)"
}

// opened is a part that is being read.
type opened struct {
	io.Reader
	from *io.PipeReader
	stop context.CancelFunc
	done chan struct{}
}

// Close ends the reading, also before the end of the part.
func (o *opened) Close() error {
	_ = o.from.CloseWithError(errors.New("the reader is closed"))
	o.stop()
	<-o.done
	return nil
}
