package faulttest

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// pageSize is the most results of one answer (service-spec.md, section 8).
const pageSize = 100

// bulk is a form of results whose values are long texts that no compression
// shortens much. They are made when they are asked for, so that gigabytes need
// no memory. Results have ascending ids and dates in equal steps.
type bulk struct {
	results int
	values  int // of a result
	length  int // characters of a value
	from    time.Time
	step    time.Duration

	pages atomic.Int64 // answers of results so far
	hook  atomic.Pointer[func(page int64)]
}

const firstID = 1001

func (b *bulk) id(i int) int64        { return int64(firstID + i) }
func (b *bulk) date(i int) time.Time  { return b.from.Add(time.Duration(i) * b.step) }
func (b *bulk) item(value int) string { return strconv.Itoa(value + 1) }
func (b *bulk) rawLength() int        { return base64.StdEncoding.DecodedLen(b.length) }

// before sets what is called before each answer of results.
func (b *bulk) before(do func(page int64)) { b.hook.Store(&do) }

func (b *bulk) serve(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(b)
	t.Cleanup(s.Close)
	return s.URL
}

// text appends the value of a result's item: the same at every reading.
func (b *bulk) text(dst []byte, id int64, value int) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(id))     //nolint:gosec // ids are not negative
	binary.LittleEndian.PutUint64(seed[8:], uint64(value)) //nolint:gosec // nor this
	raw := make([]byte, b.rawLength())
	_, _ = rand.NewChaCha8(seed).Read(raw) // never fails
	return base64.StdEncoding.AppendEncode(dst, raw)
}

// ServeHTTP answers Get Results and Get Results Count as far as formetl asks
// them: bounds of dates and ids, pages by ascending id.
func (b *bulk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("fs_api_key") != apiKey {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `<fs_response status="error"><error code="100">invalid key</error></fs_response>`)
		return
	}
	transaction, known := strings.CutPrefix(r.URL.Path, "/api/users/acme/forms/form1/")
	first, end, err := b.selected(q)
	if err == nil && known {
		switch transaction {
		case "results/count":
			fmt.Fprintf(w, "<fs_response status=\"success\"><count>%d</count></fs_response>\n", end-first)
			return
		case "results":
			b.answer(w, q, first, end)
			return
		}
	}
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `<fs_response status="error"><error code="2">not understood: %s %v</error></fs_response>`, transaction, err)
}

// selected gives the half-open range of results that the bounds leave.
func (b *bulk) selected(q url.Values) (first, end int, err error) {
	end = b.results
	bound := func(name string, of func(string) (int, error), take func(int)) {
		if !q.Has(name) || err != nil {
			return
		}
		var n int
		if n, err = of(q.Get(name)); err == nil {
			take(n)
		}
	}
	index := func(text string) (int, error) {
		id, err := strconv.Atoi(text)
		return id - firstID, err
	}
	raise := func(n int) { first = max(first, n) }
	lower := func(n int) { end = min(end, n) }
	bound("fs_min_id", index, raise)
	bound("fs_max_id", index, func(n int) { lower(n + 1) })
	bound("fs_min_date", b.firstAt, raise)
	bound("fs_max_date", b.after, lower) // it includes its own second
	return first, max(first, end), err
}

func (b *bulk) offset(text string) (time.Duration, error) {
	at, err := time.Parse(time.DateTime, text)
	return at.Sub(b.from), err
}

// firstAt is the first result that is dated at or after the text's time.
func (b *bulk) firstAt(text string) (int, error) {
	d, err := b.offset(text)
	return int(max(0, (d+b.step-1)/b.step)), err
}

// after is the first result that is dated after the text's second.
func (b *bulk) after(text string) (int, error) {
	d, err := b.offset(text)
	if d < 0 {
		return 0, err
	}
	return int(d/b.step) + 1, err
}

// answer writes a page.
func (b *bulk) answer(w http.ResponseWriter, q url.Values, first, end int) {
	page := b.pages.Add(1)
	if before := b.hook.Load(); before != nil {
		(*before)(page)
	}
	limit := pageSize
	if n, err := strconv.Atoi(q.Get("fs_limit")); err == nil {
		limit = min(limit, n)
	}
	chosen := make([]int, 0, end-first)
	for i := first; i < end; i++ {
		chosen = append(chosen, i)
	}
	if q.Get("fs_sort_direction") != "asc" {
		slices.Reverse(chosen)
	}
	out := bufio.NewWriterSize(w, 256<<10)
	fmt.Fprint(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<fs_response status=\"success\"><results>\n")
	var text []byte
	for _, i := range chosen[:min(limit, len(chosen))] {
		fmt.Fprintf(out, `<result id="%d"><metas><meta id="result_status">Complete</meta><meta id="date_finish">%s</meta></metas><items>`,
			b.id(i), b.date(i).Format(time.DateTime))
		for v := range b.values {
			text = b.text(text[:0], b.id(i), v)
			fmt.Fprintf(out, `<item id="%s" index="%d" type="text"><value>`, b.item(v), v+1)
			_, _ = out.Write(text) // told by Flush
			fmt.Fprint(out, "</value></item>")
		}
		fmt.Fprint(out, "</items></result>\n")
	}
	fmt.Fprint(out, "</results></fs_response>\n")
	_ = out.Flush() // a client that is gone has no use for it
}
