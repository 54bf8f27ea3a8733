package schemas

// ChangeKind says what changed about a column, or that a rule changed.
type ChangeKind string

// The kinds of changes.
const (
	ColumnAdded      ChangeKind = "added"      // a source that had no column now has a column
	ColumnRemoved    ChangeKind = "removed"    // a source no longer has its column
	ColumnRenamed    ChangeKind = "renamed"    // the column of a source has another name
	ColumnRelabelled ChangeKind = "relabelled" // the column of a source has another heading
	ColumnRetyped    ChangeKind = "retyped"    // another type or way to read values; Key says which
	ColumnReordered  ChangeKind = "reordered"  // another place among the columns in both schemas
	RuleChanged      ChangeKind = "rule"       // a rule that Key names has another value
)

// KeyJoined is the Key for a string column that a run added and in which it
// joined several values. Count says how often it did so.
const KeyJoined = "joined"

// Change is one difference between two descriptions of columns.
type Change struct {
	Kind   ChangeKind `json:"kind"`
	From   string     `json:"from,omitempty"`   // the column's source; "" for a rule of the whole schema
	Column string     `json:"column,omitempty"` // name of the column, the new one if renamed
	// Key is, for retyped and rule, the key of the schema file whose value
	// differs. For added it is KeyJoined or "".
	Key   string `json:"key,omitempty"`
	Was   string `json:"was,omitempty"`
	Is    string `json:"is,omitempty"`
	Label string `json:"label,omitempty"` // the heading of the column that was added or removed
	Count int64  `json:"count,omitempty"` // how many values the change concerns, if counted
	// Breaking marks a change for which readers of the outputs, or runs with
	// the old schema, may not be prepared. See Diff.
	Breaking bool `json:"breaking"`
}

// Breaking returns how many of the changes are breaking.
func Breaking(changes []Change) int {
	n := 0
	for _, c := range changes {
		if c.Breaking {
			n++
		}
	}
	return n
}

// Diff returns the changes from the schema was to the schema is. It compares
// columns that have the same source. Changes of the whole schema come first, then
// changes of columns in their new order, then removed columns in their old order.
// Equal arguments give equal lists.
//
//	kind        breaks
//	added       only if the old schema has `unknown: fail`
//	removed     yes
//	renamed     yes
//	relabelled  no; it is no change if one schema has no label
//	retyped     yes, also to a wider type; no if only words or formats are
//	            added after the old ones
//	reordered   no; a column that follows another one than before
//	rule        pii, list_as, other, empty, the hmac key: yes; nullable: if it
//	            becomes true; choices: unless new ones follow the old ones;
//	            explode: if it becomes false; unknown: if it becomes
//	            fail; on_error, max_rejects, max_columns: no
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
		delete(before, c.From) // a source fills one column only
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

// common returns the columns whose source is in others too. Of several columns with one source
// it returns the first. places gives the index of a source's first column.
func common(columns []Column, places, others map[Source]int) []Column {
	var both []Column
	for i, c := range columns {
		if _, there := others[c.From]; there && places[c.From] == i {
			both = append(both, c)
		}
	}
	return both
}

// Moved returns the columns that follow another column than before, by source. was and is hold
// the same sources in two orders. Was and Is of a change name the column before the moved one.
func Moved(was, is []Column) map[Source]Change {
	before := make(map[Source]Column, len(was))
	for i, c := range was {
		if i > 0 {
			before[c.From] = was[i-1]
		}
	}
	moved := map[Source]Change{}
	var last Column
	for _, c := range is {
		if old := before[c.From]; old.From != last.From {
			moved[c.From] = Change{Kind: ColumnReordered, From: c.From.String(), Column: c.Name, Was: behind(old), Is: behind(last)}
		}
		last = c
	}
	return moved
}

// behind says in words which column another one follows. The zero Column stands for none.
func behind(c Column) string {
	if c.From == (Source{}) {
		return "first"
	}
	return "after " + c.Name
}
