package load

import "path"

// PreparedPart is a part that this run has staged and not yet committed.
type PreparedPart struct {
	Part     Part     `json:"part"`
	Prepared Prepared `json:"prepared"`
}

// Reuse is the result of ReuseParts: which parts are listed, committed and aborted.
type Reuse struct {
	Parts      []Part     // the parts for the manifest, in place of the old parts
	New        []Prepared // new parts to commit
	Duplicates []Prepared // new parts to abort, because an equal old part stays
}

// identityOf returns a key for p. Two parts have the same key if they differ at
// most in the names of their files.
func identityOf(p Part) Part {
	p.Path = path.Dir(p.Path) + path.Ext(p.Path)
	// Equal bytes have equal ids. The number of rejected results and the dead letters are not in
	// the bytes, nor is whether files could not be fetched.
	p.MinID, p.MaxID, p.Rejected, p.Letters, p.Unfetched = 0, 0, 0, "", false
	return p
}

// ReuseParts compares the parts that a run made with the old parts that it
// replaces. If a new part equals an old part in folder, window, rows and bytes,
// the old object stays under its name, with the new part's rejects. So
// if a run reads equal results again, no file changes and readers' caches stay
// valid.
func ReuseParts(old []Part, fresh []PreparedPart) Reuse {
	byIdentity := make(map[Part][]Part, len(old))
	for _, p := range old {
		key := identityOf(p)
		byIdentity[key] = append(byIdentity[key], p)
	}
	var r Reuse
	for _, f := range fresh {
		key := identityOf(f.Part)
		if same := byIdentity[key]; len(same) > 0 {
			byIdentity[key] = same[1:]
			same[0].Rejected, same[0].Letters, same[0].Unfetched = f.Part.Rejected, f.Part.Letters, f.Part.Unfetched
			r.Parts = append(r.Parts, same[0])
			r.Duplicates = append(r.Duplicates, f.Prepared)
			continue
		}
		r.Parts = append(r.Parts, f.Part)
		r.New = append(r.New, f.Prepared)
	}
	return r
}

// Intersecting divides parts into those that a run over r replaces (hit) and
// those that stay (rest). whole is r widened to include all of hit. A part of
// results without a date lies in no range, so it is in rest. A run that read
// such results must replace it itself.
func Intersecting(parts []Part, r Range) (hit, rest []Part, whole Range) {
	whole = r
	for {
		hit, rest = nil, nil
		widened := whole
		for _, p := range parts {
			if p.Undated || !touches(whole, p) {
				rest = append(rest, p)
				continue
			}
			hit = append(hit, p)
			widened = union(widened, Range{From: p.From, To: p.To})
		}
		if widened == whole {
			return hit, rest, whole
		}
		whole = widened
	}
}

// touches tells whether the window of a part overlaps the range.
func touches(r Range, p Part) bool {
	begins := r.To.IsZero() || p.From.IsZero() || p.From.Before(r.To.Time)
	ends := r.From.IsZero() || p.To.IsZero() || r.From.Before(p.To.Time)
	return begins && ends
}

// union returns the smallest range that includes the ranges a and b.
func union(a, b Range) Range {
	if b.From.IsZero() || !a.From.IsZero() && b.From.Before(a.From.Time) {
		a.From = b.From
	}
	if b.To.IsZero() || !a.To.IsZero() && a.To.Before(b.To.Time) {
		a.To = b.To
	}
	return a
}
