package v2

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/formetl/formetl/extract/page"
)

// The oracle reads an answer with the tokens of encoding/json, and the dates with package
// time. It shares no code with the decoder.

// plainCell is a cell of a page.
type plainCell struct {
	Kind   page.Kind
	ID     string
	Values []string
}

type plainResult struct {
	ID    int64
	Cells []plainCell
}

// plain copies the results of a page.
func plain(p *page.Page) []plainResult {
	results := make([]plainResult, 0, p.Len())
	for i := range p.Len() {
		r := plainResult{ID: p.ID(i)}
		for _, c := range p.Cells(i) {
			f := p.Fields[c.Field]
			cell := plainCell{Kind: f.Kind, ID: f.ID}
			for j := range int(c.Values) {
				cell.Values = append(cell.Values, string(p.Value(c, j)))
			}
			r.Cells = append(r.Cells, cell)
		}
		results = append(results, r)
	}
	return results
}

// member is a member of an object; objects keep their order and double members.
type member struct {
	name  string
	value any
}

var (
	errDamaged = errors.New("not JSON")
	errWrong   = errors.New("not what the service sends")
)

// oracleTree reads a document: []member, []any, string, json.Number, bool, nil.
func oracleTree(body []byte) (any, error) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if !json.Valid(body) {
		return nil, errDamaged
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	v, err := oracleValue(d)
	if err != nil {
		return nil, errDamaged
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errDamaged
	}
	return v, nil
}

func oracleValue(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		object := []member{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := oracleValue(d)
			if err != nil {
				return nil, err
			}
			object = append(object, member{name.(string), v})
		}
		_, err = d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := oracleValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	}
	return t, nil
}

// oracleText returns a scalar as text. ok is false for null.
func oracleText(v any) (text string, ok bool, err error) {
	switch v := v.(type) {
	case nil:
		return "", false, nil
	case string:
		return strings.Map(func(r rune) rune {
			if r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0xfffe || r == 0xffff {
				return utf8.RuneError
			}
			return r
		}, v), true, nil
	case json.Number:
		return v.String(), true, nil
	case bool:
		return strconv.FormatBool(v), true, nil
	}
	return "", false, errWrong
}

// one returns the text of the only scalar that is not null among the members of a name.
func one(object []member, name string) (text string, ok bool, err error) {
	for _, m := range object {
		if m.name != name {
			continue
		}
		t, is, err := oracleText(m.value)
		if err != nil || is && ok {
			return "", false, errWrong
		}
		if is {
			text, ok = t, true
		}
	}
	return text, ok, nil
}

var oracleMetas = []string{
	"result_status", "date_start", "date_finish", "date_update", "user_ip", "user_browser", "user_device", "user_os", "user_referrer",
	"login_username", "login_email", "payment_status", "payment_amount", "score",
}

// oraclePage returns what a document holds. isFailure tells that it reports an error.
func oraclePage(tree any, zone *time.Location) (results []plainResult, isFailure bool, err error) {
	root, ok := tree.([]member)
	if !ok {
		return nil, false, errWrong
	}
	var lists [][]any
	for _, m := range root {
		if m.name == "error" && m.value != nil {
			isFailure = true
		}
		if list, ok := m.value.([]any); ok && m.name == "results" {
			lists = append(lists, list)
		}
	}
	if isFailure {
		return nil, true, nil
	}
	if len(lists) != 1 {
		return nil, false, errWrong
	}
	results = []plainResult{}
	for _, v := range lists[0] {
		object, ok := v.([]member)
		if !ok {
			return nil, false, errWrong
		}
		r, err := oracleResult(object, zone)
		if err != nil {
			return nil, false, err
		}
		results = append(results, r)
	}
	return results, false, nil
}

func oracleResult(object []member, zone *time.Location) (r plainResult, err error) {
	id, ok, err := one(object, "id")
	if err != nil || !ok {
		return r, errWrong
	}
	n, err := strconv.ParseUint(strings.Trim(id, " \t\r\n"), 10, 63)
	if err != nil {
		return r, errWrong
	}
	r.ID = int64(n)
	seen, items := map[string]bool{}, false
	for _, m := range object {
		switch {
		case m.name == "items" && m.value != nil:
			list, ok := m.value.([]any)
			if !ok || items {
				return r, errWrong
			}
			items = true
			for _, v := range list {
				cell, err := oracleItem(v)
				if err != nil {
					return r, err
				}
				r.Cells = append(r.Cells, cell)
			}
		case slices.Contains(oracleMetas, m.name):
			if err := r.meta(m.name, m.value, seen, zone); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

func (r *plainResult) meta(name string, value any, seen map[string]bool, zone *time.Location) error {
	text, ok, err := oracleText(value)
	if err != nil || !ok {
		return err
	}
	if seen[name] {
		return errWrong
	}
	seen[name] = true
	if strings.HasPrefix(name, "date_") {
		text = oracleDate(text, zone)
	}
	r.Cells = append(r.Cells, plainCell{page.KindMeta, name, []string{text}})
	return nil
}

// oracleDate turns an instant into wall-clock time.
func oracleDate(text string, zone *time.Location) string {
	// Package time is more lenient than the decoder about hours and commas.
	if len(text) < 20 || text[13] != ':' || strings.Contains(text, ",") {
		return text
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	t = t.In(zone)
	if t.Year() < 0 || t.Year() > 9999 {
		return text
	}
	return t.Format("2006-01-02 15:04:05")
}

func oracleItem(v any) (cell plainCell, err error) {
	object, ok := v.([]member)
	if !ok {
		return cell, errWrong
	}
	id, _, err := one(object, "id")
	if err != nil || id == "" {
		return cell, errWrong
	}
	cell = plainCell{Kind: page.KindItem, ID: id}
	found := false
	for _, m := range object {
		switch m.value.(type) {
		case []member, []any:
			if m.name == "position" {
				return cell, errWrong
			}
		}
		if m.name != "value" && m.name != "values" || m.value == nil {
			continue
		}
		if found {
			return cell, errWrong
		}
		found = true
		if list, ok := m.value.([]any); ok {
			if cell.Values, err = oracleEntries(list); err != nil {
				return cell, err
			}
			if len(cell.Values) == 0 {
				cell.Values = []string{""}
			}
			continue
		}
		text, _, err := oracleText(m.value)
		if err != nil {
			return cell, err
		}
		cell.Values = []string{text}
	}
	return cell, nil
}

func oracleEntries(list []any) (values []string, err error) {
	type placed struct {
		at   int
		text string
	}
	var all []placed
	positions := true
	for _, v := range list {
		object, ok := v.([]member)
		if !ok {
			text, ok, err := oracleText(v)
			if err != nil {
				return nil, err
			}
			if ok {
				all, positions = append(all, placed{0, text}), false
			}
			continue
		}
		value, hasValue, err := one(object, "value")
		other, hasOther, otherErr := one(object, "other")
		position, hasPosition, positionErr := one(object, "position")
		if err := errors.Join(err, otherErr, positionErr); err != nil {
			return nil, errWrong
		}
		if !hasValue && !hasOther {
			continue
		}
		if other != "" {
			value = other
		}
		at, err := strconv.Atoi(position)
		positions = positions && hasPosition && err == nil
		all = append(all, placed{at, value})
	}
	if positions {
		slices.SortStableFunc(all, func(a, b placed) int { return a.at - b.at })
	}
	for _, p := range all {
		values = append(values, p.text)
	}
	return values, nil
}
