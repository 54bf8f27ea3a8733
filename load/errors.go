package load

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Error is an error of writing or reading an output, or of the state that runs keep.
type Error struct {
	Kind   Kind
	Op     string // what was tried, such as "create"; "" if Path and Err say it
	Path   string // the path, URL, table or cell, as the user knows it
	Remedy string // what the user can do about the error; Hint returns it
	Err    error
}

// Error says what was tried with which output, and why it failed.
func (e *Error) Error() string {
	if e.Op == "" {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("cannot %s %s: %v", e.Op, e.Path, e.Err)
}

// Hint returns the remedy, "" if there is none.
func (e *Error) Hint() string { return e.Remedy }

// Unwrap returns the cause of the error.
func (e *Error) Unwrap() error { return e.Err }

// Is tells whether the error's Kind is target, so that errors.Is finds an Error by its Kind.
func (e *Error) Is(target error) bool { return target == e.Kind }

// ExitCode is that of the error's Kind.
func (e *Error) ExitCode() int { return int(e.Kind) }

// Kind says what is at fault. It is the exit code of contract.md. errors.Is(err, kind) tells
// whether err wraps an Error of that kind.
type Kind int

// The kinds of an Error.
const (
	ErrUsage    Kind = 64 // a flag or a definition asks for what would lose results
	ErrData     Kind = 65 // the format cannot hold a value without changing it
	ErrUnusable Kind = 73 // the output's folder is missing or forbidden, or its place taken
	ErrFailed   Kind = 74 // a full disk, a failing device, a store that refuses
	ErrAway     Kind = 75 // the output could not be reached or was busy, also after retries
	ErrDenied   Kind = 77 // a database refused the credentials
	ErrConfig   Kind = 78 // the definition names what cannot be, or does not fit an existing table
)

// Error makes a Kind an error, for errors.Is; the text names its exit code.
func (k Kind) Error() string { return fmt.Sprintf("an error with exit code %d", int(k)) }

// Refusal says why a store or a database refused something. An Error wraps it. Its text holds no
// password, no signature and no value.
type Refusal struct {
	What string // what was refused, in words
	Code string // the answer's code, such as "AccessDenied, HTTP 403"; "" for none
	Err  error  // the error of the library, whose text is not shown
}

// Error says what was refused, with the code of the answer.
func (r *Refusal) Error() string {
	if r.Code == "" {
		return r.What
	}
	return fmt.Sprintf("%s (%s)", r.What, r.Code)
}

// Unwrap returns the error of the library.
func (r *Refusal) Unwrap() error { return r.Err }

// NotOrdinary returns an ErrUnusable if what lies at a path is a device, a pipe, a socket or a
// link. A file that is written in one step would take its place, which nobody wants. info is
// what Lstat returns, and link returns where a link leads. A folder is no error here: the
// system never replaces a folder by a file.
func NotOrdinary(path string, info fs.FileInfo, link func() (string, error)) error {
	switch mode := info.Mode(); {
	case mode.IsRegular(), mode.IsDir():
		return nil
	case mode&fs.ModeSymlink == 0:
		return &Error{
			Kind: ErrUnusable, Op: "write", Path: path, Err: errors.New("it is not an ordinary file, and would be replaced by one"),
			Remedy: "give another file; for standard output, export takes -",
		}
	}
	target, err := link()
	if err != nil {
		target = "another place"
	}
	return &Error{
		Kind: ErrUnusable, Op: "write", Path: path, Err: fmt.Errorf("it is a link to %s, and would be replaced by a file", target),
		Remedy: "give that file itself, or remove the link",
	}
}

// HeldError means that another run holds the lease (exit code 75).
type HeldError struct {
	Path string // address of the destination
	// Holder is the run that holds the lease. It is zero if its name cannot be read.
	Holder
}

// Error names the run that holds the lease, since when, and on which host.
func (e *HeldError) Error() string {
	if e.RunID == "" {
		return fmt.Sprintf("another run is writing to %s", e.Path)
	}
	return fmt.Sprintf("run %s of pipeline %s (process %d on %s) has been writing to %s since %s",
		e.RunID, e.Pipeline, e.PID, e.Host, e.Path, e.Since.Format(time.RFC3339))
}

// ExitCode is 75: the same command may succeed after the other run has ended.
func (e *HeldError) ExitCode() int { return 75 }

// Hint advises to wait for the end of the other run, or to stop it.
func (e *HeldError) Hint() string {
	return "wait until that run has ended, or stop it; then run the same command again"
}
