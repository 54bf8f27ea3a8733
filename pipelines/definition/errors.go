package definition

import "github.com/formetl/formetl/pipelines/internal/strictyaml"

// Error lists everything that is wrong in a definition or schema file. Its exit
// code is 78.
type Error = strictyaml.Error

// Problem is one thing that is wrong in a definition or schema file.
type Problem = strictyaml.Problem

// UnsupportedError is something that a definition may ask for and this
// version cannot do.
type UnsupportedError struct{ What, Remedy string }

// Error names what is not supported and what to do instead.
func (e *UnsupportedError) Error() string {
	return e.What + " is not supported by this version; " + e.Remedy
}
