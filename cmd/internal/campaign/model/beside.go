package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/cmd/internal/readback"
)

// idsName is where the id set of a part lies.
func idsName(p readback.Part) string { return "_ids/" + p.IDs + ".roaring" }

// checkIDs makes sure that the id set of each part of a dataset holds the results of its
// rows. A child's holds those without an element too.
func (l *Look) checkIDs(o *Output) error {
	if !o.Dataset() {
		return nil
	}
	rows := map[string]*roaring64.Bitmap{}
	for _, p := range l.Manifest.Parts {
		rows[p.Path] = roaring64.New()
	}
	for id, read := range l.Rows {
		rows[read[0].Part.Path].Add(uint64(id)) //nolint:gosec // ids are positive
	}
	for _, p := range l.Manifest.Parts {
		ids, data := roaring64.New(), l.Files[idsName(p)]
		if sum := sha256.Sum256(data); p.IDs != "" && (hex.EncodeToString(sum[:]) != p.IDs || ids.UnmarshalBinary(data) != nil) {
			return fmt.Errorf("the id set of %s of %s is missing or damaged", p.Path, o)
		}
		if lacks := roaring64.AndNot(rows[p.Path], ids); !lacks.IsEmpty() || o.Explode == "" && !ids.Equals(rows[p.Path]) {
			return fmt.Errorf("the id set of %s of %s is %s, and its rows are of %s", p.Path, o, ids, rows[p.Path])
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
