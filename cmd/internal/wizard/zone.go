package wizard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

const (
	// shownResults is how many results are shown in both clocks.
	shownResults = 3
	// mostAhead is how far clocks may differ before a zone counts as wrong.
	mostAhead = 5 * time.Minute
)

// dated is a date of a result, as the service gives it.
type dated struct {
	meta string
	wall time.Time // the account's wall clock, see definition.ParseWallTime
}

// chooseZone asks for the zone, next to the newest results of a form. They show whether
// it is right, and cost one request.
func (s *Session) chooseZone(ctx context.Context) error {
	if err := readNewest(ctx, s); err != nil {
		return err
	}
	asked := s.o.Ask != nil && !s.answered("timezone")
	given := s.answered("timezone")
	if err := s.ask(ctx, "timezone"); err != nil {
		return err
	}
	if !asked {
		s.o.Tell(clocks(s, s.value("timezone")))
	}
	if text := zoneProblem(s); given && text != "" {
		s.o.Tell("warning: --timezone: " + text)
	}
	return nil
}

// readNewest reads the newest results of the chosen form that has the most, if forms
// were counted, else of the first.
func readNewest(ctx context.Context, s *Session) error {
	client, err := s.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	form := slices.MaxFunc(chosenForms(s), func(a, b string) int { return cmp.Compare(s.sizes[a], s.sizes[b]) })
	p, err := client.Results(ctx, form, extract.ResultsQuery{Descending: true, Limit: shownResults})
	if err != nil {
		return fmt.Errorf("the newest results of form %s: %w", plain.Line(form), err)
	}
	defer p.Release()
	for i := range p.Len() {
		if d, ok := newestDate(p, i); ok {
			s.newest = append(s.newest, d)
		}
	}
	slices.SortStableFunc(s.newest, func(a, b dated) int { return b.wall.Compare(a.wall) })
	s.newest = s.newest[:min(len(s.newest), shownResults)]
	return nil
}

// newestDate is the latest of a result's dates.
func newestDate(p *page.Page, i int) (newest dated, ok bool) {
	for _, c := range p.Cells(i) {
		field := p.Fields[c.Field]
		if field.Kind != page.KindMeta || !strings.HasPrefix(field.ID, "date_") || c.Values == 0 {
			continue
		}
		wall, err := definition.ParseWallTime(string(p.Value(c, 0)))
		if err == nil && wall.After(newest.wall) {
			newest, ok = dated{strings.Clone(field.ID), wall}, true
		}
	}
	return newest, ok
}

// clocks shows the newest results by the account's clock, and when that was if the account
// is in a zone. The text has as many lines for every zone.
func clocks(s *Session, name string) string {
	if len(s.newest) == 0 {
		return "No result has a date yet, so that nothing shows whether the zone is right."
	}
	zone, err := definition.LoadZone(strings.TrimSpace(name))
	now := s.o.Account.Now()
	rows := [][]string{{"THE SERVICE SAYS", "", "THAT IS"}}
	for _, d := range s.newest {
		is := "no such zone"
		if err == nil {
			is = show.Since(now, d.at(zone))
		}
		rows = append(rows, []string{d.wall.Format(extract.WireTime), d.meta, is})
	}
	clock := "An IANA name, such as America/Chicago or UTC."
	if err == nil {
		clock = "There it is now " + now.In(zone).Format(extract.WireTime) + "."
	}
	return show.Columns("", rows) + clock
}

// at is when the account's clock showed the date.
func (d dated) at(zone *time.Location) time.Time { return show.FirstInstant(load.Wall(d.wall), zone) }

// zoneProblem tells of a zone in which results would come from the future.
func zoneProblem(s *Session) string {
	zone, err := definition.LoadZone(s.value("timezone"))
	if err != nil || len(s.newest) == 0 {
		return ""
	}
	ahead := s.newest[0].at(zone).Sub(s.o.Account.Now())
	if ahead <= mostAhead {
		return ""
	}
	return fmt.Sprintf("in %s the result of %s would be %s, so that the account is in a zone further east; its settings name it",
		zone, s.newest[0].wall.Format(extract.WireTime), show.Ago(-ahead))
}
