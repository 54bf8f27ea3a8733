package model

import (
	"fmt"
	"strings"

	"github.com/formetl/formetl/cmd/internal/readback"
	"github.com/formetl/formetl/load/idset"
)

// idsName is where the id set of a part lies.
func idsName(p readback.Part) string { return "_ids/" + p.IDs + ".ids" }

// checkIDs makes sure that the id set of each part of a dataset holds the results of its
// rows. A child's holds those without an element too.
func (l *Look) checkIDs(o *Output) error {
	if !o.Dataset() {
		return nil
	}
	rows := map[string]*idset.Builder{}
	for _, p := range l.Manifest.Parts {
		rows[p.Path] = &idset.Builder{}
	}
	for id, read := range l.Rows {
		rows[read[0].Part.Path].Add(id)
	}
	for _, p := range l.Manifest.Parts {
		data, held := l.Files[idsName(p)], rows[p.Path].Set()
		ids, err := idset.Decode(data)
		if p.IDs != "" && (idset.Sum(data) != p.IDs || err != nil) {
			return fmt.Errorf("the id set of %s of %s is missing or damaged", p.Path, o)
		}
		if !held.Without(ids).IsEmpty() || o.Explode == "" && !ids.Equal(held) {
			return fmt.Errorf("the id set of %s of %s is %s, and its rows are of %s", p.Path, o, ids, held)
		}
	}
	return nil
}

// Orphans are the id sets and dead letters of a dataset that belong to none of its parts.
func (l *Look) Orphans() (names []string) {
	own := map[string]bool{}
	if l.Manifest != nil {
		for _, p := range l.Manifest.Parts {
			own[idsName(p)], own["_rejects/"+p.Letters+".jsonl"] = true, true
		}
	}
	for name := range l.Files {
		if beside := strings.HasPrefix(name, "_ids/") || strings.HasPrefix(name, "_rejects/"); beside && !own[name] {
			names = append(names, name)
		}
	}
	return names
}
