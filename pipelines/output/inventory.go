package output

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// Unlisted is an *UnlistedPartsError if an inventory found parts that no manifest lists,
// otherwise nil. path is the dataset's address.
func Unlisted(def *definition.Definition, path string, i load.Inventory) error {
	if len(i.Unlisted) == 0 {
		return nil
	}
	return &UnlistedPartsError{Dataset: path, Names: load.NamesOf(i.Unlisted), Replace: def.Command("run", "--full"), Remove: def.Command("clean", "--unlisted")}
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

// ExitCode is 73: nothing can be written beside these parts.
func (e *UnlistedPartsError) ExitCode() int { return 73 }

// Hint says how to get rid of them.
func (e *UnlistedPartsError) Hint() string {
	return "look at these parts; then replace the dataset with `formetl run DEFINITION --full`, or remove them with `formetl clean DEFINITION --unlisted`"
}

// DamagedPartsError means that a run noticed damaged parts outside its range
// (exit code 65). What the run itself read is committed.
type DamagedPartsError struct {
	Dataset string // path or URL
	Parts   []load.DamagedPart
	// Run returns the command of a run with flags.
	Run func(flags string) string
}

// Error names the parts and the commands that read them again.
func (e *DamagedPartsError) Error() string {
	names, parts := make([]string, len(e.Parts)), make([]load.Part, len(e.Parts))
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

// ExitCode is 65: data that the manifest lists is missing.
func (e *DamagedPartsError) ExitCode() int { return 65 }

// ReadAgain returns the flags of each of the runs that replace parts. A part that lacks a
// bound needs --full, because no range includes it.
func ReadAgain(parts []load.Part) []string {
	var spans []load.Range
	for _, p := range parts {
		if p.Undated || p.From.IsZero() || p.To.IsZero() {
			return []string{"--full"}
		}
		spans = append(spans, load.Range{From: p.From, To: p.To})
	}
	slices.SortFunc(spans, func(a, b load.Range) int { return a.From.Compare(b.From.Time) })
	var joined []load.Range
	for _, s := range spans {
		if last := len(joined) - 1; last >= 0 && !s.From.After(joined[last].To.Time) {
			if joined[last].To.Before(s.To.Time) {
				joined[last].To = s.To
			}
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
func flagTime(t load.WallTime) string {
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
