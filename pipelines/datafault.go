package pipelines

import "slices"

// DataAtFault tells whether one of the errors in a tree ends a command with 65. A run that
// it ends keeps no checkpoint, because the next one would meet the same data. As for the exit
// code, an error with a code of its own decides, whatever it wraps: an outage is temporary,
// whatever the last answer was.
func DataAtFault(err error) bool {
	if c, ok := err.(interface{ ExitCode() int }); ok && c.ExitCode() != 0 { //nolint:errorlint // the tree is walked by hand
		return c.ExitCode() == 65
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return DataAtFault(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), DataAtFault)
	}
	return false
}
