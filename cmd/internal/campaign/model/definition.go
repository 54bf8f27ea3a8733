package model

import (
	"slices"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// Definition is what the oracle has to know of a definition and of the service
// that it reads from.
type Definition struct {
	Zone    *time.Location
	View    *formservice.View // nil: all data
	Where   []formservice.Condition
	Any     bool     // one condition is enough
	Columns []Column // declared; nil: inferred
	Ignore  bool     // unknown: ignore, else add

	// DatesIgnored and SearchIgnored tell of a service that answers as if no
	// such bound had been asked for.
	DatesIgnored  bool
	SearchIgnored bool
	// Uncounted tells of a service whose answers tell no counts, or wrong ones.
	Uncounted bool
}

// Column is a declared column.
type Column struct {
	Name, From, Type, OnError string
}

// Verified tells whether the service can count what the definition reads: it
// counts neither searches nor views.
func (d *Definition) Verified() bool { return len(d.Where) == 0 && d.View == nil }

// Matches tells whether a result passes the definition's search and view.
func (d *Definition) Matches(r formservice.Result) bool {
	if d.View != nil && slices.ContainsFunc(d.View.Where, func(c formservice.Condition) bool { return !c.Holds(r) }) {
		return false
	}
	if len(d.Where) == 0 || d.SearchIgnored {
		return true
	}
	for _, c := range d.Where {
		if c.Holds(r) == d.Any {
			return d.Any
		}
	}
	return !d.Any
}

// shows tells whether answers have a column of the service.
func (d *Definition) shows(id string) bool {
	return d.View == nil || d.View.Columns == nil || slices.Contains(d.View.Columns, id)
}

// declared gives the rule of a column, ok false for an inferred one.
func (d *Definition) declared(from string) (Column, bool) {
	for _, c := range d.Columns {
		if c.From == from {
			return c, true
		}
	}
	return Column{}, false
}
