package load

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Inventory is the difference between the parts that lie at a dataset and those
// that its manifest lists.
type Inventory struct {
	// Damaged are the listed parts that are missing or have another size than
	// the manifest says.
	Damaged []DamagedPart
	// Unlisted are the objects that are named like parts but are not in the manifest,
	// sorted by name. A reader that finds parts by a glob reads them as data.
	Unlisted []Object
}

// DamagedPart is a listed part that is missing or has the wrong size.
type DamagedPart struct {
	Part
	Missing bool
	Now     int64 // its size in bytes, if it is not missing
}

// String names the part and what is wrong with it.
func (p DamagedPart) String() string {
	if p.Missing {
		return p.Path + " (missing)"
	}
	return fmt.Sprintf("%s (%d bytes instead of %d)", p.Path, p.Now, p.Bytes)
}

// TakeInventory compares the parts that lie at a dataset with its manifest m,
// which is nil for none. It lists the dataset and reads no part. The caller
// must have finished a recorded commit. It must hold the lease if others may
// write meanwhile.
func TakeInventory(ctx context.Context, s Store, m *Manifest) (Inventory, error) {
	var i Inventory
	parts, err := listOurs(ctx, s, dtPrefix, partPrefix)
	if err != nil {
		return i, err
	}
	there := map[string]int64{}
	for _, o := range parts {
		there[o.Name] = o.Bytes
	}
	if m != nil {
		for _, p := range m.Parts {
			if _, err := ParsePartName(p.Path); err != nil {
				continue // its name is not in the form of a part's, so the listing does not hold it
			}
			bytes, ok := there[p.Path]
			if !ok || bytes != p.Bytes {
				i.Damaged = append(i.Damaged, DamagedPart{Part: p, Missing: !ok, Now: bytes})
			}
			delete(there, p.Path)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		i.Unlisted = append(i.Unlisted, Object{Name: name, Bytes: there[name]})
	}
	return i, nil
}

// listOurs lists the objects of a dataset whose names begin with one of the prefixes, without
// those whose names formetl does not give.
func listOurs(ctx context.Context, s Store, prefixes ...string) (objects []Object, err error) {
	for _, prefix := range prefixes {
		found, err := s.List(ctx, prefix)
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	return slices.DeleteFunc(objects, func(o Object) bool { return strayKind(o.Name) == "" }), nil
}

// Sound divides parts into sound ones and those that the inventory found damaged.
func (i Inventory) Sound(parts []Part) (sound []Part, damaged []DamagedPart) {
	found := make(map[string]DamagedPart, len(i.Damaged))
	for _, p := range i.Damaged {
		found[p.Path] = p
	}
	for _, p := range parts {
		if d, ok := found[p.Path]; ok {
			damaged = append(damaged, d)
		} else {
			sound = append(sound, p)
		}
	}
	return sound, damaged
}

// Err is an *UnlistedPartsError if there are unlisted parts, otherwise nil.
// where is the dataset's address, and replace and remove are the commands that lead out,
// for the message.
func (i Inventory) Err(where, replace, remove string) error {
	if len(i.Unlisted) == 0 {
		return nil
	}
	return &UnlistedPartsError{Dataset: where, Names: NamesOf(i.Unlisted), Replace: replace, Remove: remove}
}

// UnlistedPartsError means that a dataset holds parts that no manifest lists
// (exit code 73). If a run added parts beside them, readers that find parts by
// a glob could see rows twice.
type UnlistedPartsError struct {
	Dataset string   // path or URL
	Names   []string // of the parts
	Replace string   // the command that replaces the whole dataset
	Remove  string   // the command that removes these parts alone
}

// Error names the parts and the two commands that remove them.
func (e *UnlistedPartsError) Error() string {
	return fmt.Sprintf("%s holds %s that no manifest lists: %s; nothing is written beside them. "+
		"`%s` replaces the whole dataset and removes them, `%s` removes them alone",
		e.Dataset, countOf(len(e.Names)), few(e.Names), e.Replace, e.Remove)
}

// DamagedPartsError means that a run noticed damaged parts outside its range
// (exit code 65). What the run itself read is committed.
type DamagedPartsError struct {
	Dataset string // path or URL
	Parts   []DamagedPart
	// Run returns the command of a run with flags.
	Run func(flags string) string
}

// Error names the parts and the commands that read them again.
func (e *DamagedPartsError) Error() string {
	names, parts := make([]string, len(e.Parts)), make([]Part, len(e.Parts))
	for i, p := range e.Parts {
		names[i], parts[i] = p.String(), p.Part
	}
	commands := ReadAgain(parts)
	for i, flags := range commands {
		commands[i] = "`" + e.Run(flags) + "`"
	}
	return fmt.Sprintf("%s: %s of the manifest outside this run's range, which is committed, cannot be read: %s; read them again by %s",
		e.Dataset, countOf(len(e.Parts)), few(names), strings.Join(commands, ", and by "))
}

// DataFault returns true, because data that the manifest lists is missing.
func (e *DamagedPartsError) DataFault() bool { return true }

// ReadAgain returns the flags of each of the runs that replace parts. A part that lacks a
// bound needs --full, because no range includes it.
func ReadAgain(parts []Part) []string {
	var spans []Range
	for _, p := range parts {
		if p.Undated || p.From.IsZero() || p.To.IsZero() {
			return []string{"--full"}
		}
		spans = append(spans, Range{From: p.From, To: p.To})
	}
	slices.SortFunc(spans, func(a, b Range) int { return a.From.Compare(b.From.Time) })
	var joined []Range
	for _, s := range spans {
		if last := len(joined) - 1; last >= 0 && !s.From.After(joined[last].To.Time) {
			joined[last] = union(joined[last], s)
			continue
		}
		joined = append(joined, s)
	}
	flags := make([]string, len(joined))
	for i, s := range joined {
		flags[i] = fmt.Sprintf("--from %s --to %s", flagTime(s.From), flagTime(s.To))
	}
	return flags
}

// flagTime writes a wall-clock time as flags take it, without a blank.
func flagTime(t WallTime) string {
	if t.Hour() == 0 && t.Minute() == 0 && t.Second() == 0 {
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02T15:04:05")
}

func countOf(parts int) string {
	if parts == 1 {
		return "1 part"
	}
	return fmt.Sprintf("%d parts", parts)
}

// few joins names with commas. Of more than 100 names it lists only the first 100.
func few(names []string) string {
	const most = 100
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
