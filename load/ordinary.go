package load

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Replacer is a Destination where something else than an object can have an object's name,
// as a device has in a folder.
type Replacer interface {
	// Replaceable returns a *CreateError if an object must not take the place of what has
	// its name: see NotOrdinary.
	Replaceable(ctx context.Context, name string) error
}

// NotOrdinary returns a *CreateError if what lies at a path is a device, a pipe, a socket or
// a link. A file that is written in one step would take its place, and nobody wants that.
// info is what Lstat returns, and link returns where a link leads. A folder is left to the
// system, which never replaces it by a file.
func NotOrdinary(path string, info fs.FileInfo, link func() (string, error)) error {
	switch mode := info.Mode(); {
	case mode.IsRegular(), mode.IsDir():
		return nil
	case mode&fs.ModeSymlink == 0:
		return &CreateError{
			Op: "write", Path: path, Err: errors.New("it is no ordinary file, and would be replaced by one"),
			Hint: "name another file, or - for standard output",
		}
	}
	target, err := link()
	if err != nil {
		target = "another place"
	}
	return &CreateError{
		Op: "write", Path: path, Err: fmt.Errorf("it is a link to %s, and would be replaced by a file", target),
		Hint: "name the file that it leads to, remove the link, or name - for standard output",
	}
}
