package extract

import (
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// maxAnswer bounds an answer's size in bytes, compressed or not. A hundred
// results with sixteen hundred answers of a kilobyte each stay well below.
const maxAnswer = 256 << 20

// answer is what came with one attempt's body.
type answer struct {
	size        int // of the body in bytes, after decompression
	contentType string
	status      int
	retryAfter  time.Duration
}

// receiver takes in the body of an answer. A later attempt begins it anew.
type receiver interface {
	// read reads the body to its end and returns its size in bytes. said is the
	// size by its header, negative where there is none. Errors of the reader
	// are returned as they are.
	read(body io.Reader, said int64) (int, error)
	// decode decodes what was read last: a *ServiceError for an error
	// envelope, an *AnswerError for anything else that is not the answer.
	decode(contentType string) error
}

// pageReceiver takes in an answer of Get Results, into the page's own memory.
type pageReceiver struct {
	page   *Page
	bounds Bounds
	usual  *atomic.Int64 // size of the last body, for one whose size nobody says
}

func (p pageReceiver) read(body io.Reader, said int64) (int, error) {
	if said < 0 {
		said = p.usual.Load()
	}
	err := p.page.readBody(body, said, p.bounds)
	if err == nil {
		p.usual.Store(int64(len(p.page.text)))
	}
	return len(p.page.text), err
}

func (p pageReceiver) decode(contentType string) error {
	return p.page.Decode(contentType, p.bounds)
}

// treeReceiver takes in an answer of any other transaction.
type treeReceiver struct {
	bounds Bounds
	body   []byte
	use    func(root *node) error
}

// receive takes in an answer whose root goes to use.
func (c *Client) receive(use func(root *node) error) *treeReceiver {
	return &treeReceiver{bounds: c.bounds, use: use}
}

func (t *treeReceiver) read(body io.Reader, _ int64) (n int, err error) {
	// One byte more, so that decodeTree sees that it is too large.
	t.body, err = io.ReadAll(io.LimitReader(body, t.bounds.Bytes+1))
	return len(t.body), err
}

func (t *treeReceiver) decode(contentType string) error {
	root, err := decodeTree(t.body, contentType, t.bounds)
	own := err == nil
	if own {
		err = t.use(root)
	}
	if a, ok := errors.AsType[*AnswerError](err); ok {
		a.sum, a.ours = sumOf(t.body), a.ours || own
	}
	return err
}
