package main

import (
	"slices"
	"time"

	"github.com/formetl/formetl/cmd/internal/campaign/model"
	"github.com/formetl/formetl/cmd/internal/readback"
	"github.com/formetl/formetl/extract/formservice"
)

// manners say what people may do to results at a time.
type manners struct {
	come  bool // results are begun
	move  bool // results get another date, or their first
	leave bool // results are deleted
	edit  bool // answers are changed

	within []readback.Span // no result moves to a date outside these
}

// freely is how people behave while nothing of theirs is being read.
func freely() manners { return manners{come: true, move: true, leave: true, edit: true} }

// and is what both allow.
func (m manners) and(o manners) manners {
	return manners{m.come && o.come, m.move && o.move, m.leave && o.leave, m.edit && o.edit, slices.Concat(m.within, o.within)}
}

// change lets people change one result, if they may; now is the instant that
// it is.
func (p *people) change(now time.Time, m manners) {
	ids := p.form.IDs()
	one := func() int64 { return ids[p.random.IntN(len(ids))] }
	var acts []func()
	add := func(times int, may bool, act func()) {
		for range times {
			if may {
				acts = append(acts, act)
			}
		}
	}
	there := len(ids) > 0
	add(3, m.come, func() { p.insert(now) })
	add(1, m.leave && there, func() { p.form.Remove(one()) })
	add(3, m.move && there, func() { p.move(one(), now, m) })
	add(3, m.edit && there, func() { p.edit(one()) })
	add(3, m.move && m.leave, func() { p.compensate(m) })
	if len(acts) > 0 {
		pick(p.random, acts...)()
	}
}

// insert submits a result, now or, as one that is stored late, before.
func (p *people) insert(now time.Time) {
	if p.late > 0 && chance(p.random, 30) {
		p.late-- // a new question was put to the form
	}
	date := wall(now, p.zone).Add(-time.Duration(p.random.IntN(7200)) * time.Second)
	if chance(p.random, 30) {
		date = p.date(now)
	}
	p.form.Put(p.newResult(date))
}

// edit answers anew. The result stays where it is.
func (p *people) edit(id int64) {
	r, there := p.form.Served.Get(id)
	if !there {
		return
	}
	p.answer(&r)
	p.form.Put(r)
}

// move gives a result another date: it is finished, or the date is set anew.
func (p *people) move(id int64, now time.Time, m manners) {
	r, there := p.form.Served.Get(id)
	if !there {
		return
	}
	date := p.date(now)
	if model.DateOf(r).IsZero() || chance(p.random, 50) {
		date = wall(now, p.zone).Add(-time.Duration(p.random.IntN(7200)) * time.Second)
	}
	p.finish(r, date, m)
}

// finish gives a result a date, if it may have that.
func (p *people) finish(r formservice.Result, date time.Time, m manners) {
	if slices.ContainsFunc(m.within, func(s readback.Span) bool { return !s.Holds(date) }) {
		return
	}
	setMeta(&r, "result_status", time.Time{})
	setMeta(&r, "date_finish", date)
	p.form.Put(r)
}

// compensate moves a late result to the date of an early one, and deletes another early
// one, so that there are as many as before.
func (p *people) compensate(m manners) {
	var dated []formservice.Result
	for _, id := range p.form.IDs() {
		if r, there := p.form.Served.Get(id); there && !model.DateOf(r).IsZero() {
			dated = append(dated, r)
		}
	}
	slices.SortFunc(dated, func(a, b formservice.Result) int { return model.DateOf(a).Compare(model.DateOf(b)) })
	if third := len(dated) / 3; third > 0 {
		early := func() formservice.Result { return dated[p.random.IntN(third)] }
		p.finish(dated[len(dated)-1-p.random.IntN(third)], model.DateOf(early()), m)
		p.form.Remove(early().ID)
	}
}

// setMeta sets a date, or with none the status that a finished result has.
func setMeta(r *formservice.Result, id string, at time.Time) {
	value := "Complete"
	if !at.IsZero() {
		value = at.Format(formservice.WallTime)
	}
	for i := range r.Metas {
		if r.Metas[i].ID == id {
			r.Metas[i].Value = value
			return
		}
	}
	r.Metas = append(r.Metas, formservice.Meta{ID: id, Value: value})
}
