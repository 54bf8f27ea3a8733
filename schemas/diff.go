package schemas

import "slices"

// ChangeKind says what of a column changed.
type ChangeKind string

// The kinds of changes.
const (
	ColumnAdded      ChangeKind = "added"      // a source has a column that had none
	ColumnRemoved    ChangeKind = "removed"    // a source has lost its column
	ColumnRenamed    ChangeKind = "renamed"    // another name for the same source
	ColumnRelabelled ChangeKind = "relabelled" // another heading
	ColumnRetyped    ChangeKind = "retyped"    // values of another type, or read otherwise; Key says which
	ColumnReordered  ChangeKind = "reordered"  // another place among the columns that both have
	RuleChanged      ChangeKind = "rule"       // the rule that Key names
)

// KeyJoined is the Key of a column that a run added as a string and whose
// several values it joined, as often as Count says.
const KeyJoined = "joined"

// Change is one difference between two descriptions of columns.
type Change struct {
	Kind   ChangeKind `json:"kind"`
	From   string     `json:"from,omitempty"`   // the column's source; "" for a rule of the whole schema
	Column string     `json:"column,omitempty"` // its name, the new one where it has two
	// Key is, of retyped and rule, the key of the schema file that differs; of
	// added KeyJoined or none.
	Key   string `json:"key,omitempty"`
	Was   string `json:"was,omitempty"`
	Is    string `json:"is,omitempty"`
	Label string `json:"label,omitempty"` // the heading of what was added or removed
	Count int64  `json:"count,omitempty"` // of how many values, where they were counted
	// Breaking marks a change that readers of the outputs, or runs by the
	// contract, are not prepared for. See Diff.
	Breaking bool `json:"breaking"`
}

// Breaking counts the changes that break.
func Breaking(changes []Change) int {
	n := 0
	for _, c := range changes {
		if c.Breaking {
			n++
		}
	}
	return n
}

// Diff lists what changed from one schema to another. Columns are the same
// where their source is. The changes of the whole schema come first, then
// those of the columns in their new order, then the removed ones in their old
// order; equal arguments give equal lists.
//
//	kind        breaks
//	added       only where the schema was `unknown: fail`
//	removed     yes
//	renamed     yes
//	relabelled  no; a label that one side does not know is no change
//	retyped     yes, a wider type too; no where words or formats are added
//	            behind the old ones
//	reordered   no; the fewest columns that moved are named
//	rule        pii, list_as, empty, the hmac key: yes; nullable: where it
//	            becomes true; choices: unless new ones follow the old ones;
//	            explode: where it becomes false; unknown: where it becomes
//	            fail; on_error, max_rejects: no
func Diff(was, is *Schema) []Change {
	changes := diffRules(was, is)
	before, after := was.Places(), is.Places()
	moved := Moved(common(was.Columns, before, after), common(is.Columns, after, before))
	for _, c := range is.Columns {
		old, known := before[c.From]
		if !known {
			changes = append(changes, Change{
				Kind: ColumnAdded, From: c.From.String(), Column: c.Name, Is: c.Type.String(), Label: c.Label, Breaking: was.Unknown == UnknownFail,
			})
			continue
		}
		changes = append(changes, diffColumn(was.Columns[old], c)...)
		if m, ok := moved[c.From]; ok {
			changes = append(changes, m)
		}
		delete(before, c.From) // a source fills one column
	}
	for _, c := range was.Columns {
		if _, there := after[c.From]; !there {
			changes = append(changes, Change{
				Kind: ColumnRemoved, From: c.From.String(), Column: c.Name, Was: c.Type.String(), Label: c.Label, Breaking: true,
			})
		}
	}
	return changes
}

// common are the columns whose source is among the others too, the first of each
// source.
func common(columns []Column, places, others map[Source]int) []Column {
	var both []Column
	for i, c := range columns {
		if _, there := others[c.From]; there && places[c.From] == i {
			both = append(both, c)
		}
	}
	return both
}

// Moved tells which columns changed their place; was and is hold the same sources
// in two orders. The longest run of columns that keep their order stays, and all
// others moved. Was and Is name the column before each.
func Moved(was, is []Column) map[Source]Change {
	place := make(map[Source]int, len(was))
	for i, c := range was {
		place[c.From] = i
	}
	order := make([]int, len(is))
	for i, c := range is {
		order[i] = place[c.From]
	}
	moved := map[Source]Change{}
	stays := rising(order)
	for i, c := range is {
		if len(stays) > 0 && stays[0] == i {
			stays = stays[1:]
			continue
		}
		moved[c.From] = Change{
			Kind: ColumnReordered, From: c.From.String(), Column: c.Name,
			Was: behind(was, order[i]), Is: behind(is, i),
		}
	}
	return moved
}

func behind(columns []Column, i int) string {
	if i == 0 {
		return "first"
	}
	return "after " + columns[i-1].Name
}

// rising returns the indices of a longest rising subsequence of distinct
// numbers.
func rising(list []int) []int {
	var ends []int // ends[n]: index of the least number that ends a run of n+1
	previous := make([]int, len(list))
	for i, x := range list {
		n, _ := slices.BinarySearchFunc(ends, x, func(at, x int) int { return list[at] - x })
		previous[i] = -1
		if n > 0 {
			previous[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	run := make([]int, len(ends))
	if len(ends) > 0 {
		for n, i := len(ends)-1, ends[len(ends)-1]; n >= 0; n, i = n-1, previous[i] {
			run[n] = i
		}
	}
	return run
}
