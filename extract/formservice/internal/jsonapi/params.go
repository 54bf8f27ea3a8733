package jsonapi

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/formetl/formetl/extract/formservice/internal/query"
)

const (
	defaultLimit = 100
	maxLimit     = 500

	byID       = "id"
	byResultID = "result_id"
)

// No bound.
const (
	NoAfter  = math.MinInt64
	NoBefore = math.MaxInt64
)

// Selection is what a request for results asks for. All bounds are exclusive.
type Selection struct {
	After, Before     int64 // instants that Clock.Compared gives; NoAfter, NoBefore
	AfterID, BeforeID int64
	Page, Limit       int
	Sort              string              // a meta or an item; "": the result's id
	Value             func(Result) string // what Sort compares, byte by byte
	Desc              bool
	View              string              // "": all data
	Where             []func(Result) bool // the search
	Any               bool                // one of Where is enough

	columns []string
}

// Refusal is an error to be answered.
type Refusal struct {
	Status  int
	Message string
	Allow   string // the methods that there are, where that is the error
}

// Error returns the message with its status.
func (r *Refusal) Error() string { return fmt.Sprintf("error %d: %s", r.Status, r.Message) }

func invalid(format string, args ...any) error {
	return &Refusal{Status: http.StatusUnprocessableEntity, Message: "Invalid parameter: " + fmt.Sprintf(format, args...)}
}

// refuse is a bad value of a parameter.
func refuse(p query.Pair, want string) error {
	return invalid("%s: %q is not %s", p.Name, p.Value, want)
}

// only refuses parameters other than those named.
func (s *Service) only(pairs []query.Pair, names ...string) error {
	for _, p := range pairs {
		if !s.Loose && !slices.Contains(names, p.Name) {
			return invalid("%s is not a parameter of this request", p.Name)
		}
	}
	return nil
}

// selection reads the parameters of Get Form Results.
func (s *Service) selection(pairs []query.Pair, f *Form) (Selection, error) {
	sel := Selection{
		After: NoAfter, Before: NoBefore, AfterID: math.MinInt64, BeforeID: math.MaxInt64,
		Page: 1, Limit: min(defaultLimit, s.MaxLimit), Desc: true,
	}
	var criteria []criterion
	for _, p := range pairs {
		known, err := s.bound(&sel, p)
		if !known && err == nil {
			known, err = s.shape(&sel, p, f)
		}
		if !known && err == nil {
			criteria, known, err = s.search(&sel, criteria, p, f)
		}
		if err != nil {
			return sel, err
		}
		if !known && !s.Loose {
			return sel, invalid("%s is not a parameter of this request", p.Name)
		}
	}
	all := newQuestions(f, false)
	for _, c := range criteria {
		holds, err := s.condition(c, f, all)
		if err != nil {
			return sel, err
		}
		sel.Where = append(sel.Where, holds)
	}
	if sel.Sort != "" {
		sel.Value = s.columnValue(sel.Sort)
	}
	return sel, nil
}

// bound reads the four bounds. known is false for any other parameter.
func (s *Service) bound(sel *Selection, p query.Pair) (known bool, err error) {
	var date, id *int64
	switch p.Name {
	case "after_date":
		date = &sel.After
	case "before_date":
		date = &sel.Before
	case "after_id":
		id = &sel.AfterID
	case "before_id":
		id = &sel.BeforeID
	default:
		return false, nil
	}
	var ok bool
	if id != nil {
		if *id, ok = query.Digits(p.Value, math.MaxInt64-1); !ok {
			return true, refuse(p, "a result id")
		}
		return true, nil
	}
	if *date, ok = s.Clock.parse(p.Value); !ok {
		return true, refuse(p, "a date like 2026-01-31T23:59:59Z, 2026-01-31 23:59:59 or 2026-01-31")
	}
	if s.StrictDates && (*date < 0 || strings.Contains(p.Value, ".")) {
		return true, refuse(p, "a date from 1970 on in whole seconds")
	}
	*date = s.Clock.bound(*date)
	return true, nil
}

// shape reads which page is wanted, in which order and view.
func (s *Service) shape(sel *Selection, p query.Pair, f *Form) (known bool, err error) {
	switch p.Name {
	case "limit":
		n, ok := query.Digits(p.Value, math.MaxInt32)
		if !ok || n < 1 || n > int64(s.MaxLimit) && !s.ClampLimit {
			return true, refuse(p, fmt.Sprintf("a number from 1 to %d", s.MaxLimit))
		}
		sel.Limit = min(int(n), s.MaxLimit)
	case "page":
		n, ok := query.Digits(p.Value, math.MaxInt32)
		if !ok || n < 1 {
			return true, refuse(p, "a page number")
		}
		sel.Page = int(n)
	case "sort_id":
		if p.Value == byID || p.Value == byResultID {
			sel.Sort = ""
			break
		}
		if !f.Has(p.Value) {
			return true, refuse(p, "a meta or an item of this form")
		}
		sel.Sort = p.Value
	case "sort_direction":
		if p.Value != "asc" && p.Value != "desc" {
			return true, refuse(p, "asc or desc")
		}
		sel.Desc = p.Value == "desc"
	case "results_view":
		columns, ok := f.View(p.Value)
		if !ok {
			return true, refuse(p, "a view of this form")
		}
		sel.View, sel.columns = p.Value, columns
	default:
		return false, nil
	}
	return true, nil
}
