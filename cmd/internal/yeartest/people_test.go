package yeartest

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// people fill in forms, and those who own the forms edit and delete results.
type people struct {
	*truth
	random  *rand.Rand
	agenda  agenda
	planned int // deeds so far
}

// deed is what somebody does at an instant.
type deed struct {
	at time.Time
	n  int // deeds of one instant keep their order
	do func(at time.Time)
}

// agenda is a heap of deeds, the next one first.
type agenda []deed

// Len is that of heap.Interface.
func (a agenda) Len() int { return len(a) }

// Less is that of heap.Interface.
func (a agenda) Less(i, j int) bool {
	return a[i].at.Before(a[j].at) || a[i].at.Equal(a[j].at) && a[i].n < a[j].n
}

// Swap is that of heap.Interface.
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push is that of heap.Interface.
func (a *agenda) Push(x any) { *a = append(*a, x.(deed)) } //nolint:errcheck // nobody pushes anything else

// Pop is that of heap.Interface.
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

func (p *people) plan(at time.Time, do func(at time.Time)) {
	p.planned++
	heap.Push(&p.agenda, deed{at, p.planned, do})
}

// live does what people do up to an instant. mu is held.
func (p *people) live(from, to time.Time) {
	for _, f := range p.forms {
		if f.listed {
			p.hour(f, from, to)
		}
	}
	for len(p.agenda) > 0 && !p.agenda[0].at.After(to) {
		next, _ := heap.Pop(&p.agenda).(deed)
		p.now = next.at
		next.do(next.at)
	}
}

// hour plans what happens to a form in a while of about an hour.
func (p *people) hour(f *form, from, to time.Time) {
	if f.rate == 0 {
		return
	}
	busy := 2 * f.rate
	if h := to.In(p.zone).Hour(); h < 7 || h > 21 {
		busy = busy/4 + 1
	}
	n := p.random.IntN(busy + 1)
	if p.random.IntN(150) == 0 { // a mailing went out
		n += 130 + p.random.IntN(250)
	}
	instant := func() time.Time { return from.Add(1 + time.Duration(p.random.Int64N(int64(to.Sub(from))))) }
	for range n {
		p.plan(instant(), func(at time.Time) { p.begin(f, at) })
	}
	if p.random.IntN(3) == 0 {
		p.plan(instant(), func(at time.Time) { p.edit(f, at, p.days()) })
	}
	if p.random.IntN(8) == 0 {
		p.plan(instant(), func(at time.Time) { p.delete(f, at, p.days()) })
	}
	if p.random.IntN(400) == 0 { // an owner goes through the answers of the past
		p.plan(instant(), func(at time.Time) {
			for range 5 + p.random.IntN(150) {
				p.edit(f, at, wholePast)
			}
		})
	}
	if p.random.IntN(250) == 0 {
		p.plan(instant(), func(time.Time) { f.items++ })
	}
}

// wholePast is how many days back deeds of any age reach: all that a world has had.
const wholePast = 450

// days is how far back an edit or a deletion reaches: mostly not beyond the
// lookback.
func (p *people) days() int {
	if p.random.IntN(4) == 0 {
		return wholePast
	}
	return 3
}

// begin has somebody begin to fill in a form: most are done in minutes, some
// save it and finish in hours or months, or never.
func (p *people) begin(f *form, at time.Time) {
	r := formservice.Result{ID: f.take(), Metas: []formservice.Meta{
		{ID: "result_status", Value: "Incomplete"},
		{ID: "user_ip", Value: fmt.Sprint("198.51.100.", p.random.IntN(250))}, // its order differs from that of ids and dates
	}}
	p.answer(f, &r)
	started := formservice.Meta{ID: "date_start", Value: p.text(at)}
	switch n := p.random.IntN(1000); {
	case n < 880: // in one go; at is when it was finished
		started.Value = p.text(at.Add(-time.Duration(p.random.Int64N(int64(10 * time.Minute)))))
		r.Metas = append(r.Metas, started)
		complete(&r, p.text(at))
		f.put(r)
	case n < 920: // stored when it is finished, with the id of its beginning
		r.Metas = append(r.Metas, started)
		p.plan(at.Add(p.pause(48*time.Hour)), func(at time.Time) {
			if f.listed {
				complete(&r, p.text(at))
				f.put(r)
			}
		})
	case n < 922: // nothing is known of when it began
		f.put(r)
		p.finishLater(f, r.ID, at)
	default:
		r.Metas = append(r.Metas, started)
		f.put(r)
		p.finishLater(f, r.ID, at)
	}
}

// finishLater has a result finished some day, if it is there then.
func (p *people) finishLater(f *form, id int64, begun time.Time) {
	var pause time.Duration
	switch n := p.random.IntN(10); {
	case n < 6:
		pause = p.pause(48 * time.Hour)
	case n < 8:
		pause = p.pause(20 * 24 * time.Hour)
	case n < 9:
		pause = p.pause(90 * 24 * time.Hour)
	default:
		return
	}
	p.plan(begun.Add(pause), func(at time.Time) { p.finish(f, id, at) })
}

func (p *people) pause(most time.Duration) time.Duration {
	return time.Minute + time.Duration(p.random.Int64N(int64(most)))
}

// finish completes an unfinished result: its date moves.
func (p *people) finish(f *form, id int64, at time.Time) {
	r, ok := f.served.Get(id)
	if status, _ := r.Meta("result_status"); !ok || status != "Incomplete" || !f.listed {
		return
	}
	if date := dateOf(r); date.IsZero() || date.Before(p.wall(at).AddDate(0, 0, -4)) {
		p.late++
	}
	complete(&r, p.text(at))
	f.put(r)
}

func complete(r *formservice.Result, at string) {
	setMeta(r, "result_status", "Complete")
	setMeta(r, "date_finish", at)
}

func setMeta(r *formservice.Result, id, value string) {
	for i := range r.Metas {
		if r.Metas[i].ID == id {
			r.Metas[i].Value = value
			return
		}
	}
	r.Metas = append(r.Metas, formservice.Meta{ID: id, Value: value})
}

// answer gives a result its values.
func (p *people) answer(f *form, r *formservice.Result) {
	tricky := []string{"", "plain", `a "quoted", and \ slashed`, "two\nlines", "Zürich ☃", "<b>&amp;</b>", " "}
	r.Items = []formservice.Answer{
		{ID: "1", Values: []string{tricky[p.random.IntN(len(tricky))]}},
		{ID: "2", Values: []string{strconv.Itoa(p.random.IntN(1_000_000))}},
	}
	for i := range f.items {
		if p.random.IntN(3) > 0 {
			r.Items = append(r.Items, formservice.Answer{
				ID: strconv.Itoa(100 + i), Type: "text", Index: 3 + i, Values: []string{fmt.Sprint("added ", p.random.IntN(1000))},
			})
		}
	}
}

// edit changes the answers of a result. Its date stays.
func (p *people) edit(f *form, at time.Time, days int) {
	r, ok := f.some(p.random, dayOf(p.wall(at)), days)
	if !ok || !f.listed {
		return
	}
	p.answer(f, &r)
	f.put(r)
}

func (p *people) delete(f *form, at time.Time, days int) {
	if r, ok := f.some(p.random, dayOf(p.wall(at)), days); ok && f.listed {
		f.remove(r.ID)
	}
}

// text is an instant as the service writes it.
func (p *people) text(at time.Time) string { return p.wall(at).Format(wallLayout) }

// past gives a form a history of so many days.
func (p *people) past(f *form, days int, until time.Time) {
	for at := until.AddDate(0, 0, -days); at.Before(until); at = at.Add(time.Hour) {
		p.hour(f, at, at.Add(time.Hour))
	}
}

// atClockChange has results come right before and after a clock is changed, and
// in the hour that comes twice.
func (p *people) atClockChange(f *form, change time.Time) {
	for _, d := range []time.Duration{
		-2 * time.Hour, -time.Hour - time.Second, -time.Hour, -30 * time.Minute, -time.Second,
		0, time.Second, 30 * time.Minute, time.Hour - time.Second, time.Hour, 2 * time.Hour,
	} {
		p.plan(change.Add(d), func(at time.Time) { p.begin(f, at) })
	}
}

// clockChange is when the zone's clocks are next changed, zero where they are
// not before an end.
func clockChange(zone *time.Location, from, to time.Time) time.Time {
	offset := func(t time.Time) int { _, s := t.In(zone).Zone(); return s }
	for t := from.Truncate(time.Hour); t.Before(to); t = t.Add(time.Hour) {
		if offset(t.Add(-time.Second)) != offset(t) {
			return t
		}
	}
	return time.Time{}
}

// meddle changes a form while a run reads it. random is the run's own. mu is
// held.
func (p *people) meddle(f *form, at time.Time, random *rand.Rand) {
	usual := p.random
	p.random, p.now = random, at.Add(time.Duration(random.IntN(5))*time.Second)
	defer func() { p.random = usual }()
	for range 1 + random.IntN(4) {
		switch random.IntN(5) {
		case 0:
			p.begin(f, at)
		case 1:
			p.begin(f, at.Add(-time.Duration(random.Int64N(int64(3*time.Hour))))) // stored late
		case 2:
			p.edit(f, at, p.days())
		case 3:
			p.delete(f, at, p.days())
		case 4:
			for range 30 { // until one is met that is not finished
				if r, ok := f.some(random, dayOf(p.wall(at)), 3+random.IntN(60)); ok {
					p.finish(f, r.ID, at.Add(-time.Duration(random.Int64N(int64(time.Hour)))))
				}
			}
		}
	}
}
