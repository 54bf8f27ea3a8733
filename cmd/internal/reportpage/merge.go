package reportpage

import (
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines/detail"
)

// merged puts adjacent spans of the range together until there are at most n of them. The
// others, such as results without a date, stay apart.
func merged(spans []detail.Span, n int) []detail.Span {
	dated := 0
	for _, s := range spans {
		if s.Kind == detail.Dated {
			dated++
		}
	}
	if dated <= n {
		return spans
	}
	each := (dated + n - 1) / n
	var list []detail.Span
	for i, s := range spans {
		if s.Kind != detail.Dated || i%each == 0 {
			list = append(list, s)
			continue
		}
		join(&list[len(list)-1], s)
	}
	return list
}

// join adds the span behind a span to it.
func join(s *detail.Span, next detail.Span) {
	s.To, s.Windows = next.To, s.Windows+next.Windows
	s.Empty, s.Taken, s.Again, s.Unread = s.Empty+next.Empty, s.Taken+next.Taken, s.Again+next.Again, s.Unread+next.Unread
	s.Results, s.Rejected = s.Results+next.Results, s.Rejected+next.Rejected
	if s.Expected == extract.Unknown || next.Expected == extract.Unknown {
		s.Expected = extract.Unknown
	} else {
		s.Expected += next.Expected
	}
	a, b := &s.Asked, next.Asked
	switch {
	case b.Requests+b.Retries == 0:
		return
	case a.Requests+a.Retries == 0:
		*a = b
		return
	}
	a.Requests, a.Retries = a.Requests+b.Requests, a.Retries+b.Retries
	a.Began, a.Ended = min(a.Began, b.Began), max(a.Ended, b.Ended)
}

// stretches divides the time of days into at most n stretches of equal length, each with the
// counts of its days. unit is how many days each has: 1, or whole weeks.
func stretches(days []detail.Day, n int) (list []detail.Day, unit int) {
	const day = 24 * time.Hour
	from, to := days[0].Day, days[len(days)-1].Day.Add(day)
	all := int(to.Sub(from) / day)
	unit = 1
	if all > n {
		unit = 7 * ((all + 7*n - 1) / (7 * n))
		from = from.AddDate(0, 0, -(int(from.Weekday())+6)%7) // a week begins on Monday
		all = int(to.Sub(from) / day)
	}
	list = make([]detail.Day, (all+unit-1)/unit)
	for i := range list {
		list[i].Day = from.AddDate(0, 0, i*unit)
	}
	for _, d := range days {
		s := &list[int(d.Day.Sub(from)/day)/unit]
		s.Rows, s.Rejected = s.Rows+d.Rows, s.Rejected+d.Rejected
	}
	return list, unit
}
