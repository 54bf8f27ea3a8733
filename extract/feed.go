package extract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// The results in the order of their last change, newest first, are a feed of
// changes. Each page of the feed is one query: fs_sort=date_update, descending, without any bound.
// A service may ignore fs_sort, and rows may shift between two pages. So the order
// of the answers is checked, and the pages overlap.

// UpdateMeta is the meta with the time of a result's last change, by the
// service's clock.
const UpdateMeta = page.MetaUpdate

// Bounds of one reading of the feed.
const (
	mostFeedPages = 20 // a feed of more pages costs more requests than it saves
	feedTries     = 6  // how often a feed whose rows shifted begins again
	leastFeedPage = 7  // shorter pages that overlap may show no row beyond the known rows
)

// Change is one result of the feed.
type Change struct {
	ID int64
	At time.Time // the result's date_update, wall-clock time of the service's clock
	// Dates are the result's dates other than date_update, the latest first. One of them is
	// probably the date that the service filters by.
	Dates []time.Time
}

// Same tells whether two entries of the feed show the same change of the same result.
func (c Change) Same(o Change) bool { return c.ID == o.ID && c.At.Equal(o.At) }

// Feed holds the results of a form that changed last.
type Feed struct {
	Changes []Change // newest first; each result once, with its last change
	// Apart is set if the order of the answer differs from that of ids and of
	// other dates. It proves that the service sorts by date_update.
	Apart bool
}

// Newest returns the time of the newest change in the feed. It is zero if the feed is empty.
func (f *Feed) Newest() (newest time.Time) {
	if len(f.Changes) > 0 {
		newest = f.Changes[0].At
	}
	return newest
}

// FeedError says why the feed does not tell what changed.
type FeedError struct {
	Problem string
	// Sorts is set if the service sorts by date_update, and only this reading of the feed failed.
	// Newest is then the time of the newest change.
	Sorts  bool
	Newest time.Time
}

// Error says what is wrong with the feed.
func (e *FeedError) Error() string { return e.Problem }

// ExitCode is 65: the service's answers are not what was asked for.
func (e *FeedError) ExitCode() int { return 65 }

// ReadFeed reads the feed of the results that the window, search and view of a query select. It
// reads back to the time that the function since returns when given the time of the newest change.
// ReadFeed returns all changes from that time on, and the older ones of the last page. The error
// is a *FeedError if the feed does not tell what changed.
func ReadFeed(ctx context.Context, s Service, form string, of ResultsQuery, since func(newest time.Time) time.Time) (*Feed, error) {
	feed, most := &Feed{}, s.PageSize()
	for tries := 0; tries < feedTries; tries++ {
		rows, proof, pages, err := readFeedOnce(ctx, s, form, of, most, since)
		if errors.Is(err, errShifted) {
			continue
		}
		if transport.TooHeavy(err) { // ask for fewer results, as Reader.serve does
			if err := servesOne(ctx, s, form); err != nil {
				return nil, err
			}
			if most == leastFeedPage {
				return nil, &FeedError{Problem: "the service fails when it is asked which results changed last, but it answers other requests", Sorts: true, Newest: feed.Newest()}
			}
			most, tries = max(most/2, leastFeedPage), tries-1
			continue
		}
		if err != nil {
			return nil, err
		}
		// Results that changed while several pages were read are on top now, so the feed is read
		// again. It is whole once its first page reaches back to the newest change known before.
		feed.Apart = feed.Apart || proof
		feed.Changes = merged(rows, feed.Changes)
		if pages <= 1 {
			return feed, nil
		}
		newest := feed.Newest()
		since = func(time.Time) time.Time { return newest }
	}
	return nil, &FeedError{Problem: "results kept changing while the list of changes was read", Sorts: true, Newest: feed.Newest()}
}

// errShifted means that a page of the feed does not continue the page before.
var errShifted = errors.New("the rows of the feed shifted")

// readFeedOnce reads the feed once. It returns the rows in their order, whether the order of a
// page proves that the service sorts, and the number of pages. most is the number of results
// that a page is asked for.
func readFeedOnce(ctx context.Context, s Service, form string, of ResultsQuery, most int, since func(time.Time) time.Time) (rows []Change, proof bool, pages int, err error) {
	var floor time.Time
	size := most
	for pages = 1; ; pages++ {
		of.Sort, of.Descending, of.Halved = UpdateMeta, true, true
		if of.Limit, of.Page = most, 1; pages > 1 {
			of.Limit, of.Page = following(len(rows), size)
		}
		switch {
		case of.Limit > 0:
		case len(rows) <= 2:
			of.Limit, of.Page = len(rows), 2 // an empty second page ends the list
		default:
			return nil, false, pages, &FeedError{Problem: fmt.Sprintf("the service puts only %d results on a page of that list, too few to notice if one moves to another page meanwhile", size), Sorts: true, Newest: rows[0].At}
		}
		got, ownProof, err := feedPage(ctx, s, form, of)
		if err != nil || pages == 1 && len(got) == 0 {
			return nil, false, pages, err
		}
		proof = proof || ownProof
		fresh := got
		if pages == 1 {
			floor, size = since(got[0].At), len(got) // some services send shorter pages than they are asked for
		} else {
			overlap := overlapOf(rows, got)
			if overlap == 0 && (len(got) > 0 || len(rows) > 2) {
				return nil, false, pages, errShifted
			}
			fresh = got[overlap:]
		}
		rows = append(rows, fresh...)
		switch newest := rows[0].At; {
		case len(fresh) == 0 && pages == 2:
			return rows, proof, 1, nil // the first page held everything
		case len(fresh) == 0, rows[len(rows)-1].At.Before(floor):
			return rows, proof, pages, nil
		case len(got) == of.Limit && 2*len(got) > most && got[0].At.Equal(got[len(got)-1].At):
			return nil, false, pages, &FeedError{Problem: "more results changed within one second than the service lists on a page", Sorts: true, Newest: newest}
		case pages == mostFeedPages:
			return nil, false, pages, &FeedError{Problem: fmt.Sprintf("more than %d results changed since, too many to list", len(rows)), Sorts: true, Newest: newest}
		}
	}
}

// following chooses the next page of the feed: it begins with some of the last of the known
// rows, and reaches farthest beyond them. following returns the page's limit and number. The
// limit is at most size, the length of the first page, so that the service surely honours it.
// The limit is 0 if there is no such page.
func following(known, size int) (limit, number int) {
	fresh := 0
	for overlap := 1; overlap < known && overlap+fresh < size; overlap++ {
		start := known - overlap
		for n := min(size, start); n > overlap+fresh; n-- {
			if start%n == 0 {
				limit, number, fresh = n, start/n+1, n-overlap
			}
		}
	}
	return limit, number
}

// overlapOf returns how many rows at the beginning of a page repeat the last of the
// rows before. It returns 0 if the page repeats none, or if rows between them differ.
func overlapOf(before, rows []Change) int {
	at := -1
	if len(rows) > 0 {
		at = slices.IndexFunc(before, rows[0].Same)
	}
	if at < 0 {
		return 0
	}
	n := min(len(before)-at, len(rows))
	if !slices.EqualFunc(before[at:at+n], rows[:n], Change.Same) {
		return 0
	}
	return n
}

// merged returns the changes of all lists, newest first, each result once with its last change.
func merged(lists ...[]Change) []Change {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b Change) int { return b.At.Compare(a.At) })
	seen := make(map[int64]bool, len(all))
	return slices.DeleteFunc(all, func(c Change) bool {
		again := seen[c.ID]
		seen[c.ID] = true
		return again
	})
}

// feedPage asks for one page of the feed. Every row must carry the time of its
// change, and the times must be in the order that was asked for. proof tells
// whether the page is sorted neither by ids nor by other dates, which shows that the service
// sorts by the time of the change.
func feedPage(ctx context.Context, s Service, form string, q ResultsQuery) (rows []Change, proof bool, err error) {
	p, err := s.Results(ctx, form, q)
	if e, ok := errors.AsType[*transport.ServiceError](err); ok && e.Code == transport.CodeInvalidValue {
		return nil, false, &FeedError{Problem: "the service refuses to sort by " + q.Sort}
	}
	if err != nil {
		return nil, false, err
	}
	defer p.Release()
	rows = ChangesOf(p)
	if i := slices.IndexFunc(rows, func(c Change) bool { return c.At.IsZero() }); i >= 0 {
		return nil, false, &FeedError{Problem: fmt.Sprintf("result %d has no %s, or one that is not a time", rows[i].ID, UpdateMeta)}
	}
	if !slices.IsSortedFunc(rows, func(a, b Change) int {
		if q.Descending {
			a, b = b, a
		}
		return a.At.Compare(b.At)
	}) {
		return nil, false, &FeedError{Problem: "the service does not sort by " + UpdateMeta}
	}
	return rows, apart(p, UpdateMeta), nil
}

// ChangesOf returns the last change of each result of a page, in the page's order. At is
// zero for a result that carries no date_update.
func ChangesOf(p *page.Page) []Change {
	changes := make([]Change, p.Len())
	for i := range changes {
		changes[i] = changeOf(p, i)
	}
	return changes
}

func changeOf(p *page.Page, i int) Change {
	c := Change{ID: p.ID(i)}
	for _, cell := range p.Cells(i) {
		f := p.Fields[cell.Field]
		if f.Kind != page.KindMeta || cell.Values == 0 || !page.IsDate(f.ID) {
			continue
		}
		t, err := time.Parse(WireTime, string(p.Value(cell, 0)))
		switch {
		case err != nil:
		case f.ID == UpdateMeta:
			c.At = t
		default:
			c.Dates = append(c.Dates, t)
		}
	}
	slices.SortFunc(c.Dates, func(a, b time.Time) int { return b.Compare(a) })
	return c
}

// apart tells whether a page is sorted neither by ids nor by any date. It leaves out the meta
// except, by which the page was asked to be sorted.
func apart(p *page.Page, except string) bool {
	ids := p.IDs()
	if ordered(ids) {
		return false
	}
	for field, f := range p.Fields {
		if f.Kind == page.KindMeta && page.IsDate(f.ID) && f.ID != except && ordered(valuesOf(p, field)) {
			return false
		}
	}
	return true
}

// valuesOf returns the value of a field in each row of a page, "" where it is missing.
func valuesOf(p *page.Page, field int) []string {
	values := make([]string, p.Len())
	for i := range values {
		for _, cell := range p.Cells(i) {
			if int(cell.Field) == field && cell.Values > 0 {
				values[i] = string(p.Value(cell, 0))
			}
		}
	}
	return values
}

// ordered tells whether a list rises or falls.
func ordered[T cmp.Ordered](list []T) bool { return slices.IsSorted(list) || falls(list) }

// falls tells whether a list never rises.
func falls[T cmp.Ordered](list []T) bool {
	return slices.IsSortedFunc(list, func(a, b T) int { return cmp.Compare(b, a) })
}

// OldestChange asks for the result that changed first. It returns a zero Change if the
// form has no results, and a *FeedError if the result carries no date_update.
func OldestChange(ctx context.Context, s Service, form string) (Change, error) {
	rows, _, err := feedPage(ctx, s, form, ResultsQuery{Sort: UpdateMeta, Limit: 1})
	if transport.TooHeavy(err) && servesOne(ctx, s, form) == nil {
		return Change{}, &FeedError{Problem: "the service fails when it is asked for the result that was not changed for the longest time, which would show how it sorts"}
	}
	if err != nil || len(rows) == 0 {
		return Change{}, err
	}
	return rows[0], nil
}

// Check compares the feed with the result that changed first. Results without a
// date_update come first or last in the order, and the feed shows the other end. Check returns
// a *FeedError if the result that changed first changed later than the end of the feed.
func (f *Feed) Check(oldest Change) error {
	if n := len(f.Changes); n > 0 && oldest.At.After(f.Changes[n-1].At) {
		return &FeedError{Problem: "the service does not sort by " + UpdateMeta + ", or not in the direction that was asked for"}
	}
	return nil
}

// witnesses are the metas whose order shows that a service sorts. Their values
// vary from result to result, and do not follow the ids.
var witnesses = []string{"user_ip", page.MetaStatus}

// FindWitness looks for a meta whose order proves that the service sorts by
// metas: one of witnesses. It takes one or two requests, and returns "" if no meta proves it.
func FindWitness(ctx context.Context, s Service, form string) (string, error) {
	for _, column := range witnesses {
		q := ResultsQuery{Sort: column, Descending: true, Limit: s.PageSize(), Halved: true}
		p, err := s.Results(ctx, form, q)
		for transport.TooHeavy(err) && q.Limit > leastFeedPage {
			if err := servesOne(ctx, s, form); err != nil {
				return "", fmt.Errorf("check whether the service sorts: %w", err)
			}
			q.Limit /= 2
			p, err = s.Results(ctx, form, q)
		}
		if transport.TooHeavy(err) {
			continue
		}
		if e, ok := errors.AsType[*transport.ServiceError](err); ok && e.Code == transport.CodeInvalidValue {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("check whether the service sorts: %w", err)
		}
		proof := sortedBy(p, column)
		p.Release()
		if proof {
			return column, nil
		}
	}
	return "", nil
}

// sortedBy tells whether a page is in descending order of a meta with several
// values, and sorted neither by ids nor by dates.
func sortedBy(p *page.Page, column string) bool {
	field := slices.IndexFunc(p.Fields, func(f page.Field) bool { return f.Kind == page.KindMeta && f.ID == column })
	if field < 0 {
		return false
	}
	values := valuesOf(p, field)
	return falls(values) && values[0] != values[len(values)-1] && apart(p, column)
}
