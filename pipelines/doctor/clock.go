package doctor

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/interval"
)

// clockFault is from where on clocks differ too much: S3 refuses requests, and a range
// without `to` ends too far from the service's present.
const clockFault = 15 * time.Minute

// clockWatch is a transport that notes the service's clock, which the header Date of each
// answer tells (RFC 9110, section 6.6.1), and the latest request for results.
type clockWatch struct {
	next http.RoundTripper
	our  func() time.Time

	mu   sync.Mutex
	seen *clockSight // of the latest answer that had a Date
	// Of the latest request for results, and of its answer.
	query    url.Values
	lastPage string
}

// clockSight is a sight of the service's clock: it showed date between sent and came, to
// the second.
type clockSight struct{ date, sent, came time.Time }

func newClockWatch(o account.Options) *clockWatch {
	next := o.Client.Transport
	if t, ok := http.DefaultTransport.(*http.Transport); ok && next == nil {
		next = t.Clone()
	}
	return &clockWatch{next: next, our: o.Now}
}

// RoundTrip sends a request. It passes over dates of answers that lay in a cache.
func (w *clockWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := w.our()
	answer, err := w.next.RoundTrip(r)
	if err != nil {
		return answer, err
	}
	came := w.our()
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/results") {
		w.query, w.lastPage = r.URL.Query(), answer.Header.Get("Pagination-Page-Last")
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil && answer.Header.Get("Age") == "" {
		w.seen = &clockSight{date, sent, came}
	}
	return answer, nil
}

// CloseIdleConnections closes those of the transport that sends.
func (w *clockWatch) CloseIdleConnections() {
	if t, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

func (w *clockWatch) sight() *clockSight {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// asked returns the parameters of the latest request for results, and the number of the
// last page by the headers of its answer.
func (w *clockWatch) asked() (query url.Values, lastPage string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.query, w.lastPage
}

// now returns the present by our clock, and by the service's where it is known.
func (w *clockWatch) now() (ours, theirs time.Time) {
	ours = w.our()
	seen := w.sight()
	if seen == nil {
		return ours, ours
	}
	return ours, seen.date.Add(ours.Sub(seen.came))
}

// check compares the clocks.
func (w *clockWatch) check() Check {
	seen := w.sight()
	if seen == nil {
		return Check{Name: "clock", State: NotChecked, Detail: "no answer came with a Date header, so the service's clock is not known"}
	}
	return judgeClock(*seen)
}

// judgeClock compares the clocks. Only what the time of the request and the full second
// of the header do not explain is a difference.
func judgeClock(s clockSight) Check {
	var off time.Duration
	switch last := s.date.Add(time.Second); {
	case s.sent.After(last):
		off = s.sent.Sub(last)
	case s.came.Before(s.date):
		off = s.came.Sub(s.date)
	}
	c := Check{Name: "clock", State: OK, Detail: "this machine's clock and the service's agree within " + rounded(max(off.Abs(), time.Second))}
	if off.Abs() < interval.ClockLeeway {
		return c
	}
	err := &ClockError{Ours: s.came, Theirs: s.date, Off: off}
	c.State, c.Detail = Warning, err.Error()
	c.Cure = clockCure
	if off.Abs() >= clockFault {
		c.State, c.Err = Failed, err
		c.Detail += "; a range without `to` ends by this machine's clock, and S3 refuses requests of such a clock"
	}
	return c
}

// ClockError says that this machine's clock and the service's differ too much.
type ClockError struct {
	Ours, Theirs time.Time
	Off          time.Duration // by how much at least ours is ahead; negative if it is behind
}

// Error gives both clocks.
func (e *ClockError) Error() string {
	direction := "ahead of"
	if e.Off < 0 {
		direction = "behind"
	}
	return fmt.Sprintf("this machine's clock is %s %s the service's: %s here, %s in the service's Date header",
		rounded(e.Off.Abs()), direction, e.Ours.UTC().Format(time.RFC3339), e.Theirs.UTC().Format(time.RFC3339))
}

// rounded is a length of time in words that people read.
func rounded(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return several(int(d.Round(time.Second)/time.Second), "second")
	case d.Round(time.Minute) < 3*time.Hour:
		return several(int(d.Round(time.Minute)/time.Minute), "minute")
	case d < 48*time.Hour:
		return several(int(d.Round(time.Hour)/time.Hour), "hour")
	}
	return several(int(d/(24*time.Hour)), "day")
}

func several(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
