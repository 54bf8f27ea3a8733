package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/nearest"
	"github.com/formetl/formetl/transform"
)

// resolve replaces the columns that --where and --select name by what the service calls
// them. It asks for one result and the headings.
func (f *exportFlags) resolve(ctx context.Context, p *process, def *definition.Definition, o account.Options) error {
	if len(f.where)+len(f.columns) == 0 {
		return nil
	}
	known, err := columnsOf(ctx, def, o)
	if err != nil {
		return err
	}
	if len(known) <= 1 { // the id of a result is always there
		p.log.Tell(slog.LevelWarn, "note: the form shows neither headings nor results, so nobody knows whether the columns are right")
	}
	given := slices.Clone(def.Extract.Search.Where)
	for i, c := range given {
		from, err := sourceOf("--where", c.Column, known)
		if err == nil && from.Kind == schemas.FromResultID {
			err = console.Usagef("--where %s: the service does not search by the id of a result", c.Column)
		}
		if err != nil {
			return err
		}
		def.Extract.Search.Where[i].Column = from.ID
	}
	if err := repeated(def.Extract.Search.Where, given); err != nil {
		return err
	}
	for _, name := range listed(f.columns, known) {
		from, err := sourceOf("--select", name, known)
		if err != nil {
			return err
		}
		out := &def.Outputs[0]
		if slices.Contains(out.Select, from) {
			return console.Usagef("--select %s: the column was given before", name)
		}
		out.Select = append(out.Select, from)
	}
	return nil
}

// listed divides at its commas what is not the name of one column.
func listed(given []string, known []schemas.Column) []string {
	var names []string
	for _, name := range given {
		if _, err := sourceOf("", name, known); err == nil && len(known) > 1 {
			names = append(names, name)
			continue
		}
		for part := range strings.SplitSeq(name, ",") {
			names = append(names, strings.TrimSpace(part))
		}
	}
	return names
}

// columnsOf returns the columns that an export of the form shows.
func columnsOf(ctx context.Context, def *definition.Definition, o account.Options) ([]schemas.Column, error) {
	client, err := account.NewClient(ctx, def, o)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	form := def.Forms[0]
	p, err := client.Results(ctx, form, extract.ResultsQuery{Limit: 1, Headings: true, CustomLabels: def.Extract.CustomLabels})
	if err != nil {
		return nil, fmt.Errorf("form %s: its headings: %w", form, err)
	}
	defer p.Release()
	columns := transform.Infer(form, []*page.Page{p}, def.Labels).Columns
	if def.Schema != nil {
		columns = slices.Concat(def.Schema.Columns, columns) // its names come first
	}
	return columns, nil
}

// sourceOf finds a column by its heading, the label on the form, item_<id> or its id. A
// name that may be several is an error, and so is one that is none, unless nothing is known.
func sourceOf(flag, name string, known []schemas.Column) (schemas.Source, error) {
	if strings.TrimSpace(name) == "" {
		return schemas.Source{}, console.Usagef("%s names no column: give one by its heading or id", flag)
	}
	for _, is := range []func(c schemas.Column) bool{
		func(c schemas.Column) bool { return c.Name == name },
		func(c schemas.Column) bool { return c.From.ID == name || c.From.String() == name },
		func(c schemas.Column) bool { return c.From.Kind == schemas.FromItem && "item_"+c.From.ID == name },
		func(c schemas.Column) bool { return c.Label == name },
		func(c schemas.Column) bool {
			return strings.EqualFold(c.Name, name) || strings.EqualFold(onOneLine(c.Label), onOneLine(name))
		},
	} {
		var found []schemas.Source
		for _, c := range known {
			if is(c) && !slices.Contains(found, c.From) {
				found = append(found, c.From)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return schemas.Source{}, console.Usagef("%s %s: several columns have this label: name one by its id, %s or %s", flag, name, found[0].ID, found[1].ID)
		}
	}
	if len(known) <= 1 {
		return guess(name), nil
	}
	names := make([]string, 0, 2*len(known))
	// The questions of a form are more telling than its metas, so that they come first.
	ordered := slices.SortedStableFunc(slices.Values(known), func(a, b schemas.Column) int {
		return cmp.Compare(b.From.Kind, a.From.Kind)
	})
	for _, c := range ordered {
		names = append(names, c.Name)
	}
	for _, c := range known {
		if c.Label != "" && c.Label != c.Name {
			names = append(names, c.Label)
		}
	}
	hint := cmp.Or(nearest.Hint(name, names), "; it has "+few(names, len(known)))
	return schemas.Source{}, console.Usagef("%s %s: the form has no such column%s", flag, name, hint)
}

// onOneLine returns a label as it is shown in a line: line breaks are blanks.
func onOneLine(label string) string { return strings.Join(strings.Fields(label), " ") }

// guess takes a name for an item if it is a number, and else for a meta.
func guess(name string) schemas.Source {
	id := strings.TrimPrefix(name, "item_")
	if id != "" && strings.Trim(id, "0123456789-") == "" {
		return schemas.Source{Kind: schemas.FromItem, ID: id}
	}
	return schemas.Source{Kind: schemas.FromMeta, ID: name}
}

// few names up to twelve columns out of so many.
func few(names []string, columns int) string {
	const most = 12
	if columns <= most {
		return strings.Join(names[:columns], ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), columns-most)
}

// repeated refuses what the service takes only once. given are the criteria as they were
// typed.
func repeated(where, given []extract.Criterion) error {
	for i, c := range where {
		if slices.ContainsFunc(where[:i], func(o extract.Criterion) bool { return o.Column == c.Column && o.Operator == c.Operator }) {
			return console.Usagef("--where: the service takes %q once for a column, and %s has it twice; export each by itself", c.Operator, given[i].Column)
		}
	}
	return nil
}
