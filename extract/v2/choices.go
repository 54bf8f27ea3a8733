package v2

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// choices are the choices of one item as results show them: labels by position. Values of texts
// and files have positions too, so an item with two labels at one position counts as plain.
type choices struct {
	labels map[int64]string
	other  string // the label of the choice beside which people type a text
	plain  bool   // the item holds texts or files, not choices
}

// translate returns a search as API v2 takes it: choices by their positions (service-v2.md, section
// 4), and the terms of result_status in API v2's words. Only results tell the positions, so the
// form's latest results are asked for once if an item is searched.
func (c *Client) translate(ctx context.Context, form string, s extract.Search) (extract.Search, error) {
	for _, criterion := range s.Where {
		if err := searchable(criterion); err != nil {
			return s, err
		}
	}
	s.Where = slices.Clone(s.Where)
	for i, criterion := range s.Where {
		column := criterion.Column
		switch {
		case column == "result_status":
			s.Where[i].Term = cmp.Or(map[string]string{"Confirmed": "Complete", "Unconfirmed": "Incomplete"}[criterion.Term], criterion.Term)
			continue
		case page.KnownMeta(column) || column == "id" || column == "result_id":
			continue
		}
		all, err := c.choices(ctx, form)
		if err != nil {
			return s, err
		}
		if item := all[column]; item != nil && !item.plain {
			if s.Where[i].Term, err = item.position(criterion); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// position returns the position of the choice whose label is the criterion's term. A term that is a
// number is taken for a position, unless some label is a number.
func (item *choices) position(criterion extract.Criterion) (string, error) {
	if criterion.Operator != extract.OpEquals {
		return "", cannotSearch(criterion, "a question with choices can only be searched by equals, for a whole choice")
	}
	numbers := false
	for place, label := range item.labels {
		if label == criterion.Term {
			return strconv.FormatInt(place, 10), nil
		}
		numbers = numbers || isNumber(label)
	}
	if isNumber(criterion.Term) && !numbers {
		return criterion.Term, nil
	}
	if item.other != "" && criterion.Term == item.other {
		return "", &transport.Error{Code: 78, Problem: fmt.Sprintf("the service cannot search for the choice %q, beside which people type a text of their own", item.other), Remedy: "leave this condition out; then keep the rows in which the column of these texts is not empty (by API v2 its name ends with _other, such as colours_other)"}
	}
	seen := make([]string, 0, len(item.labels))
	for _, place := range slices.Sorted(maps.Keys(item.labels)) {
		seen = append(seen, fmt.Sprintf("%q", item.labels[place]))
	}
	return "", cannotSearch(criterion, "it finds only choices that the latest results have: "+
		cmp.Or(strings.Join(seen, ", "), "none")+"; search for one of these; an older choice, or a text that somebody typed, needs API v1")
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 63)
	return err == nil
}

// choices returns the choices of a form's items, by item id, as one page of the form's
// latest results shows them. The page is asked for once.
func (c *Client) choices(ctx context.Context, form string) (map[string]*choices, error) {
	return c.learned.choices.get(ctx, form, func() (map[string]*choices, error) {
		r := transport.Call{Transaction: getResults, Kind: transport.KindOther, Form: form, Path: "results"}
		r.Parameters.Add("limit", strconv.Itoa(PageSize))
		r.Parameters.Add("sort_direction", "desc")
		return askForList(ctx, c, r, "results", func(list []json.RawMessage) map[string]*choices {
			all := map[string]*choices{}
			for _, result := range list {
				for _, raw := range listOf(objectOf(result)["items"]) {
					note(all, objectOf(raw))
				}
			}
			return all
		})
	})
}

// note adds to all the choices that an item of a result shows. The label of an "other" choice is
// left out: which results a search for it finds is not known.
func note(all map[string]*choices, item object) {
	id := item.text("id")
	known := all[id]
	if known == nil {
		known = &choices{labels: map[int64]string{}}
	}
	all[id] = known
	values := listOf(item["values"])
	known.plain = known.plain || values == nil && item["value"] != nil
	for _, raw := range values {
		entry := objectOf(raw)
		place, placed := entry.number("position")
		label := textOf(entry["value"])
		switch {
		case !placed:
			known.plain = true
		case textOf(entry["other"]) != "":
			known.other = label
		case label == "":
		case known.labels[place] == "":
			known.labels[place] = label
		case known.labels[place] != label:
			known.plain = true
		}
	}
}
