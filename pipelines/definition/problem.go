package definition

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/formetl/formetl/schemas/plain"
)

// Problem is one thing that is wrong in a definition or schema file.
type Problem struct {
	File    string // set only if the problem is in another file, one that Error.File names
	Line    int    // line of the file, from 1; 0 if no line can be named: the file cannot be read
	Column  int    // place in the line, from 1, in characters
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

// suggest is the remedy for a word that is none of the known words: to write the nearest of
// the known words, or what otherwise says if none is near.
func suggest(word string, known []string, otherwise string) string {
	return cmp.Or(plain.Suggest(word, known), otherwise)
}

// Error lists everything that is wrong in a definition or schema file. No secret is
// ever part of it.
type Error struct {
	File     string
	Problems []Problem // at least one, in the order of the file
	Err      error     // the system's error if the file cannot be read, else nil
	Cure     string    // what to do if the file is right, but of another kind than expected, else ""
	// Name is the name of the pipeline that the file defines, "" if it could not be read or
	// the file is a schema file.
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

// Unwrap returns the system's error if the file cannot be read, else nil.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode is 78 (configuration), also for a file that is missing: what is wrong is mended in
// the files that the user wrote.
func (e *Error) ExitCode() int { return 78 }

// Fault is an error that people can mend, with an exit code and what to do about it.
type Fault struct {
	Code int    // exit code of the command that meets the fault; 0: the exit code of Err
	Text string // what is wrong
	Cure string // what to do; "" if Text says it, or if the exit code alone tells what to do
	Err  error  // the errors that Text sums up; nil for a single fault
}

// Error returns the text of the fault, which says what is wrong.
func (f *Fault) Error() string { return f.Text }

// Unwrap returns the errors that this fault sums up, nil for a single fault.
func (f *Fault) Unwrap() error { return f.Err }

// ExitCode is the exit code of a command that meets the fault; 0 means that of the wrapped error.
func (f *Fault) ExitCode() int { return f.Code }

// Hint says what to do about the fault; the command line prints it below the error.
func (f *Fault) Hint() string { return f.Cure }

// Unsupported makes the Fault, of exit code 78, for what a definition may ask for and this
// version of formetl cannot do. what names it, remedy says what to do instead.
func Unsupported(what, remedy string) error {
	return &Fault{Code: 78, Text: what + " is not supported by this version; " + remedy}
}
