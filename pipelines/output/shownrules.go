package output

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// What CSV shows otherwise than other formats is remembered by a dataset: its
// parts are read together.

// strictProfile is the CSV profile that manifests do not name.
const strictProfile = "strict"

// profileRule is a CSV profile as manifests tell it.
func profileRule(profile string) string {
	if profile == strictProfile {
		return ""
	}
	return profile
}

// listRule is how a column shows lists, as manifests tell it. Formats that show
// them in one way have lost it by then.
func listRule(c schemas.Column) string {
	if c.ListAs == schemas.ListJoined {
		return ""
	}
	return string(c.ListAs)
}

// checkLists refuses a schema that shows a list in CSV otherwise than the older
// parts do: they have other columns, or another text.
func checkLists(path string, committed []load.Column, s *schemas.Schema) error {
	places := s.Places()
	for _, was := range committed {
		from, err := schemas.ParseSource(was.From)
		if err != nil {
			continue
		}
		at, ok := places[from]
		if !ok {
			continue
		}
		if is := listRule(s.Columns[at]); is != was.ListAs {
			describe := func(rule string) string { return "list_as: " + cmp.Or(rule, string(schemas.ListJoined)) }
			return &SchemaChangedError{Path: path, Column: was.Name, Was: describe(was.ListAs), Is: describe(is)}
		}
	}
	return nil
}

// tellOrphans warns of child outputs that the schema no longer asks for: they
// stay as they are, with the values that they hold.
func (p *place) tellOrphans(ctx context.Context) {
	schema := p.job.Def.Schema
	if p.manifest == nil || schema == nil || p.out.Exploded() {
		return
	}
	for _, was := range p.manifest.Schema {
		from, err := schemas.ParseSource(was.From)
		if err != nil || !was.Explode {
			continue
		}
		at := schema.Find(from)
		if at >= 0 && schema.Columns[at].Explode && schema.Columns[at].Name == was.Name {
			continue
		}
		child := definition.ChildPath(p.Path, was.Name)
		what := "the list " + was.Name + " is no longer exploded: its child output " + child + " stays as it is, with its values; remove it where they must not be kept"
		p.job.Drift(what)
		p.job.Log.LogAttrs(ctx, slog.LevelWarn, what, slog.String("path", child))
	}
}
