package definition

import (
	"cmp"
	"runtime"
	"strings"
)

// Command returns a command of formetl for this definition, such as "run", in words that a
// shell takes as they are. It repeats the flags that the definition was given with (Given),
// because without them it would mean another one, or none. The key is never shown.
// DEFINITION stands for one that was read from no file.
func (d *Definition) Command(command string, flags ...string) string {
	words := []string{"formetl", command, ShellWord(cmp.Or(d.File, "DEFINITION"))}
	for _, given := range d.Given {
		words = append(words, ShellWord(given))
	}
	for _, f := range flags {
		if f != "" {
			words = append(words, f)
		}
	}
	return d.Source.Key.Redact(strings.Join(words, " "))
}

// ShellWord quotes a word where the system's shell would take it for something else.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if word != "" && strings.TrimLeftFunc(word, plain) == "" {
		return word
	}
	if runtime.GOOS == "windows" {
		return `"` + word + `"`
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
