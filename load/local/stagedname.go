package local

import (
	"crypto/rand"
	"encoding/base64"
	"path"
	"strings"

	"github.com/formetl/formetl/load"
)

const (
	stagedPrefix = "staged-"
	maxBase      = 255 // bytes of a file's name on common file systems
)

// stagedName makes the name of a staged file from a random text and the final name in
// base64. Base64 has no dot, so the name has no data extension. All this is in the name,
// because the name exists as soon as the file does. A final name that is too long is left out.
func stagedName(final string) string {
	name := stagedPrefix + rand.Text()
	if encoded := base64.RawURLEncoding.EncodeToString([]byte(final)); len(name)+1+len(encoded) <= maxBase {
		return name + "-" + encoded
	}
	return name
}

// stagedFor reads the final name from a name that stagedName made, "" if it cannot be read.
func stagedFor(base string) string {
	_, encoded, _ := strings.Cut(strings.TrimPrefix(base, stagedPrefix), "-")
	name, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || load.CheckObjectName(string(name)) != nil {
		return ""
	}
	return string(name)
}

// stagedRun returns the run of the staged file of that name, and whether it is one.
func stagedRun(name string) (run string, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[0] != load.ControlFolder || load.CheckRun(parts[1]) != nil {
		return "", false
	}
	return parts[1], strings.HasPrefix(path.Base(name), stagedPrefix)
}
