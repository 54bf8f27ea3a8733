package local

import (
	"crypto/rand"
	"encoding/base64"
	"path"
	"strings"

	"github.com/formetl/formetl/load"
)

const maxBase = 255 // bytes of a file's name on common file systems

// stagedName makes the name of a run's staged file from a random text and the final name in
// base64, which has no dot. All this is in the name, because the name exists as soon as the
// file does. A final name that is too long is left out.
func stagedName(run, final string) string {
	name := load.StagedName(run, rand.Text())
	if encoded := base64.RawURLEncoding.EncodeToString([]byte(final)); len(path.Base(name))+1+len(encoded) <= maxBase {
		return name + "-" + encoded
	}
	return name
}

// stagedFor reads the final name from what load.ParseStagedName returned of a name that
// stagedName made. It is "" if it cannot be read.
func stagedFor(id string) string {
	_, encoded, _ := strings.Cut(id, "-")
	name, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || load.CheckObjectName(string(name)) != nil {
		return ""
	}
	return string(name)
}
