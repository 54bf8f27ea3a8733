package local

import (
	"crypto/rand"
	"encoding/base64"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/formetl/formetl/load"
)

const (
	stagedPrefix = "staged-"
	maxBase      = 255 // bytes of a file's name on common file systems
)

// stagedName makes the name of a staged file: something random, the time in
// seconds, and the final name in base64, which holds no dot and so ends in no
// data extension. They are in the file's name because that is there as soon as
// the file is. A final name that does not fit is left out.
func stagedName(final string, now time.Time) string {
	name := stagedPrefix + rand.Text() + "-" + strconv.FormatInt(now.Unix(), 16)
	if encoded := base64.RawURLEncoding.EncodeToString([]byte(final)); len(name)+1+len(encoded) <= maxBase {
		return name + "-" + encoded
	}
	return name
}

// stagedFor reads what stagedName tells, as far as it is told.
func stagedFor(base string) (final string, since time.Time) {
	parts := strings.SplitN(strings.TrimPrefix(base, stagedPrefix), "-", 3)
	if len(parts) < 2 {
		return "", time.Time{}
	}
	if seconds, err := strconv.ParseInt(parts[1], 16, 64); err == nil {
		since = time.Unix(seconds, 0)
	}
	if len(parts) == 3 {
		name, err := base64.RawURLEncoding.DecodeString(parts[2])
		if err == nil && load.CheckObjectName(string(name)) == nil {
			final = string(name)
		}
	}
	return final, since
}

// stagedRun tells whose staged file a name is, if it is one.
func stagedRun(name string) (run string, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[0] != load.ControlFolder || load.CheckRun(parts[1]) != nil {
		return "", false
	}
	return parts[1], strings.HasPrefix(path.Base(name), stagedPrefix)
}
