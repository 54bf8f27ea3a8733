package load

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Error is what an output, or the state, failed of.
type Error struct {
	Kind Kind
	Op   string // what was tried, such as "create"; "" if Path and Err say it
	Path string // the path, the URL, the table or the cell, as the user knows it
	Hint string // what to do
	Err  error
}

// Error says what was tried, where, why it failed and what to do.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %v", e.Path, e.Err)
	if e.Op != "" {
		s = "cannot " + e.Op + " " + s
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is lets errors.Is find an Error of a kind.
func (e *Error) Is(target error) bool { return target == e.Kind }

// ExitCode is that of the kind.
func (e *Error) ExitCode() int { return int(e.Kind) }

// Kind says what is at fault. It is the exit code of contract.md. errors.Is(err, kind) tells
// whether err wraps an Error of that kind.
type Kind int

// The kinds of an Error.
const (
	ErrUsage    Kind = 64 // what was asked for would lose results
	ErrData     Kind = 65 // the format cannot hold a value without changing it
	ErrUnusable Kind = 73 // its folder is missing or not permitted, or something else lies in its place
	ErrFailed   Kind = 74 // a full disk, a failing device, a store that refuses
	ErrAway     Kind = 75 // it could not be reached or was busy, also after retries
	ErrDenied   Kind = 77 // a database refused the credentials
	ErrConfig   Kind = 78 // the definition names what cannot be, or does not fit a table that is there
)

// Error names the kind.
func (k Kind) Error() string { return fmt.Sprintf("an error that ends with %d", int(k)) }

// Refusal says why a store or a database refused something. An Error wraps it. Its text holds no
// password, no signature and no value.
type Refusal struct {
	What string // in words
	Code string // what was answered, such as "AccessDenied, HTTP 403"; "" for nothing
	Err  error  // the library's, whose text is not shown
}

// Error says what was refused, with the code.
func (r *Refusal) Error() string {
	if r.Code == "" {
		return r.What
	}
	return fmt.Sprintf("%s (%s)", r.What, r.Code)
}

// Unwrap gives the library's error.
func (r *Refusal) Unwrap() error { return r.Err }

// NotOrdinary returns an ErrUnusable if what lies at a path is a device, a pipe, a socket or
// a link. A file that is written in one step would take its place, and nobody wants that.
// info is what Lstat returns, and link returns where a link leads. A folder is left to the
// system, which never replaces it by a file.
func NotOrdinary(path string, info fs.FileInfo, link func() (string, error)) error {
	switch mode := info.Mode(); {
	case mode.IsRegular(), mode.IsDir():
		return nil
	case mode&fs.ModeSymlink == 0:
		return &Error{
			Kind: ErrUnusable, Op: "write", Path: path, Err: errors.New("it is no ordinary file, and would be replaced by one"),
			Hint: "name another file, or - for standard output",
		}
	}
	target, err := link()
	if err != nil {
		target = "another place"
	}
	return &Error{
		Kind: ErrUnusable, Op: "write", Path: path, Err: fmt.Errorf("it is a link to %s, and would be replaced by a file", target),
		Hint: "name the file that it leads to, remove the link, or name - for standard output",
	}
}

// HeldError means that another run holds the lease (exit code 75).
type HeldError struct {
	Path string // of the destination
	// Holder is the run that holds the lease. It is zero if it cannot be read.
	Holder
}

// Error names the holder, since when it holds the lease, and what to do.
func (e *HeldError) Error() string {
	if e.RunID == "" {
		return fmt.Sprintf("another run is writing to %s; try again when it has ended", e.Path)
	}
	return fmt.Sprintf("run %s of pipeline %s (process %d on %s) has been writing to %s since %s; try again when it has ended",
		e.RunID, e.Pipeline, e.PID, e.Host, e.Path, e.Since.Format(time.RFC3339))
}

// ExitCode is 75: the other run ends.
func (e *HeldError) ExitCode() int { return 75 }

// Hint says what to do next.
func (e *HeldError) Hint() string {
	return "wait until that run has ended; then run the same command again"
}
