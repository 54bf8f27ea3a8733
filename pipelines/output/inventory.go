package output

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

// Unlisted returns an error if an inventory found parts that no manifest lists. If a run added
// parts beside them, readers that find parts by a glob could see rows twice. path is the
// dataset's address.
func Unlisted(def *definition.Definition, path string, i load.Inventory) error {
	if len(i.Unlisted) == 0 {
		return nil
	}
	return &definition.Fault{
		Code: 73,
		Text: fmt.Sprintf("%s holds %s that no manifest lists: %s; nothing is written beside them. `%s` replaces the whole dataset and removes them, `%s` removes them alone",
			path, countOf(len(i.Unlisted)), plain.Few(load.NamesOf(i.Unlisted), mostNames), def.Command("run", "--full"), def.Command("clean", "--unlisted")),
		Cure: "look at these parts; then replace the dataset with `formetl run DEFINITION --full`, or remove them with `formetl clean DEFINITION --unlisted`",
	}
}

// damagedParts returns the fault of a run that noticed damaged parts outside its range. What
// the run itself read is committed. run returns the command of a run with the given flags.
func damagedParts(path string, damaged []load.DamagedPart, run func(flags string) string) error {
	names, parts := make([]string, len(damaged)), make([]load.Part, len(damaged))
	for i, p := range damaged {
		names[i], parts[i] = p.String(), p.Part
	}
	commands := ReadAgain(parts)
	for i, flags := range commands {
		commands[i] = "`" + run(flags) + "`"
	}
	return &definition.Fault{Code: 65, Text: fmt.Sprintf("%s: %s of the manifest outside this run's range, which is committed, cannot be read: %s; read them again by %s",
		path, countOf(len(damaged)), plain.Few(names, mostNames), strings.Join(commands, ", and by "))}
}

// ReadAgain returns, for each run that is needed to replace parts, the command-line flags of
// its range. A part without a bound of time needs --full, because no range includes it.
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

// flagTime writes a wall-clock time in the form of the flags --from and --to, without a blank.
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

// mostNames is how many parts an error names at most.
const mostNames = 100
