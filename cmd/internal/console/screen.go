package console

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/schemas/plain"
)

// screen is standard error. Below the lines that are written, a terminal shows a status line: what
// the command waits for, or the bar.
type screen struct {
	io.Writer

	mu     sync.Mutex
	bar    string
	waits  string      // what the command waits for
	asked  *time.Timer // since the first request; nil before it
	met    bool        // the service has answered
	closed bool        // no status line is shown any more
	shown  []rune      // the status line as it is shown
	torn   bool        // a full disk took the beginning of a line only
}

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.refresh()
	s.clear()
	line := p
	if s.torn {
		line = append([]byte("\n"), p...)
	}
	n, err := s.Writer.Write(line)
	s.torn = n < len(line) && (n > 0 || s.torn)
	return min(n, len(p)), err
}

// update changes what is shown.
func (s *screen) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.refresh()
}

// refresh shows the status line. It cuts a line that is wider than the terminal, because what is
// wrapped cannot be removed. Two columns are left for the ^C of a terminal.
func (s *screen) refresh() {
	line := []rune(plain.Cut(plain.Line(cmp.Or(s.waits, s.bar)), max(1, Width(s.Writer)-3)))
	if string(line) != string(s.shown) && !s.closed {
		s.clear()
		fmt.Fprint(s.Writer, string(line))
		s.shown = line
	}
}

// clear removes the status line.
func (s *screen) clear() {
	if len(s.shown) > 0 {
		fmt.Fprint(s.Writer, "\r"+strings.Repeat(" ", len(s.shown)+2)+"\r")
		s.shown = nil
	}
}

// leave shows a bar for the last time: later lines stand below it.
func (s *screen) leave(bar string) {
	s.update(func() { s.bar, s.waits = bar, "" })
	s.update(func() {
		if s.bar = ""; len(s.shown) > 0 && !s.closed {
			fmt.Fprintln(s.Writer)
			s.shown = nil
		}
	})
}

// close removes the status line for good.
func (s *screen) close() {
	s.update(func() {
		s.clear()
		s.closed = true
	})
}

// Contact shows a person that the command waits for a service that has answered nothing for a
// second, or does not answer any more.
func (l *Log) Contact(c transport.Contact) {
	s := l.out
	switch {
	case !l.ToPerson():
	case c.Reason != "":
		verb := map[bool]string{true: "does not answer as it should", false: "does not answer"}[c.Answered]
		reason, _, _ := strings.Cut(c.Reason, "; ")
		why := strings.TrimSpace(reason[strings.LastIndex(reason, ": ")+1:])
		s.update(func() {
			if s.waits = c.Host + " " + verb; c.Rest > 0 {
				s.waits += ", trying " + plain.Lasting(c.Rest) + " more"
			}
			s.waits += " (" + why + ")" // last, because a narrow terminal cuts the end
		})
	case c.Answered:
		s.update(func() { s.waits, s.met = "", true })
	default:
		s.update(func() {
			if s.asked == nil {
				s.asked = time.AfterFunc(time.Second, func() { s.update(func() { s.silent(c.Host) }) })
			}
		})
	}
}

// Quiet removes what Contact shows, so that a question can follow.
func (l *Log) Quiet() {
	l.out.update(func() { l.out.waits, l.out.asked = "", nil })
}

// silent shows that a service has answered nothing yet.
func (s *screen) silent(host string) {
	if !s.met && s.asked != nil {
		s.waits = cmp.Or(s.waits, "waiting for "+host+" …")
	}
}

// Width returns how many columns a terminal has, 80 for anything else.
func Width(stream any) int {
	if file, ok := stream.(interface{ Fd() uintptr }); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 { //nolint:gosec // a descriptor is small
			return columns
		}
	}
	return 80
}
