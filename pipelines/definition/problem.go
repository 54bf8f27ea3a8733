package definition

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/formetl/formetl/schemas/plain"
)

// Problem is one thing that is wrong in a definition or schema file.
type Problem struct {
	File    string // set only for a problem of another file, which the Error's file names
	Line    int    // from 1; 0 where no place can be named (the file cannot be read)
	Column  int    // from 1, in characters
	Key     string // path of the key, such as "source.timezone" or "load[0].path"; "" for the whole file
	Message string // what is wrong and why
	Remedy  string // what to write instead
}

// String returns "LINE:COLUMN: KEY: MESSAGE; REMEDY".
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d: ", p.Line, p.Column)
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Message)
	if p.Remedy != "" {
		b.WriteString("; " + p.Remedy)
	}
	return b.String()
}

// suggest is the remedy for a word that is none of the known ones: the nearest of
// them, or otherwise if none is near.
func suggest(word string, known []string, otherwise string) string {
	return cmp.Or(plain.Suggest(word, known), otherwise)
}

// Error lists everything that is wrong in a definition or schema file. No secret is
// ever part of it.
type Error struct {
	File     string
	Problems []Problem // at least one, in the order of the file
	Err      error     // the system's error if the file cannot be read, else nil
	// Name is what the file calls its subject, for example a pipeline. It is "" if that
	// is not known.
	Name string
}

// Error lists the problems, one on each line, as "FILE:LINE:COLUMN: …".
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		file := cmp.Or(p.File, e.File) + ":"
		if p.Line == 0 {
			file += " "
		}
		lines[i] = file + p.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the system's error where the file cannot be read.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode is 78, also where the file is missing: both are mended in the job's files.
func (e *Error) ExitCode() int { return 78 }

// Fault is something that is wrong and that people can mend.
type Fault struct {
	Code int    // that the command ends with; 0: that of Err
	Text string // what is wrong
	Cure string // what to do; "" where Text says it, or where it is the same for all of the code
	Err  error  // the faults that Text sums up; nil for a single one
}

// Error says what is wrong.
func (f *Fault) Error() string { return f.Text }

// Unwrap gives the faults that this one sums up.
func (f *Fault) Unwrap() error { return f.Err }

// ExitCode is the code that the command ends with.
func (f *Fault) ExitCode() int { return f.Code }

// Hint says what to do.
func (f *Fault) Hint() string { return f.Cure }

// Unsupported is the Fault of what a definition may ask for and this version cannot do.
// remedy says what to do instead.
func Unsupported(what, remedy string) error {
	return &Fault{Code: 78, Text: what + " is not supported by this version; " + remedy}
}
