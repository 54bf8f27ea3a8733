package postgres

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
)

// Open reads an object from its beginning. The rows of a part are read from the table, and
// give the bytes that were staged unless somebody changed them.
func (d *Destination) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := load.CheckName(name); err != nil {
		return nil, err
	}
	var found tables.Found
	err := d.with(ctx, "read", name, func(s *session) (err error) {
		found, err = s.Find(ctx, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	if found.Data != nil {
		return io.NopCloser(bytes.NewReader(found.Data)), nil
	}
	ctx, stop := context.WithCancel(ctx)
	from, to := io.Pipe()
	o := &opened{Reader: io.MultiReader(bytes.NewReader(found.Line), from), from: from, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		err := d.with(ctx, "read", name, func(s *session) error {
			_, err := s.conn.CopyTo(ctx, to, "COPY ("+found.Rows+") TO STDOUT (FORMAT binary)")
			return err
		})
		_ = to.CloseWithError(err)
	}()
	return o, nil
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
