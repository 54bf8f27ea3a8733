package load

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// ControlFolder is the folder for objects that are not data: staged files, locks, leases, and
// the record of a commit that is under way. It lies at the destination's root. No name in the
// folder ends in the extension of data files, so no glob for data matches it.
const ControlFolder = ".formetl"

// ProbePrefix begins the names of the objects that a destination is tested with. The test
// removes them at once; Clean removes those of a process that was killed.
const ProbePrefix = ControlFolder + "/probe-"

// TemporaryPrefix begins the names of files that a folder's Put writes before it renames them.
const TemporaryPrefix = ControlFolder + "/put-"

// isBelow tells whether name begins with prefix and holds no further folder.
func isBelow(name, prefix string) bool {
	rest, is := strings.CutPrefix(name, prefix)
	return is && !strings.Contains(rest, "/")
}

// stagedPrefix begins the last element of the name of each object in a run's folder that tells
// of a staged object.
const stagedPrefix = "staged-"

// StagedName returns the name of the object that tells of an object that a run stages: a file
// in the run's folder of the control folder. id is one element without a dot, so that a glob
// for data does not match.
func StagedName(run, id string) string { return ControlFolder + "/" + run + "/" + stagedPrefix + id }

// ParseStagedName reads a name that StagedName returned, and refuses every other name.
func ParseStagedName(name string) (run, id string, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[0] != ControlFolder || CheckRun(parts[1]) != nil {
		return "", "", false
	}
	id, ok = strings.CutPrefix(parts[2], stagedPrefix)
	return parts[1], id, ok
}

const (
	maxName    = 1024 // bytes of a whole name: the limit of S3 keys
	maxElement = 255  // bytes of one element: the limit of common file systems
)

// BadName is the error, an ErrConfig, of an object name that destinations refuse. The name could
// lead out of the destination, lie in the control folder, or not be storable everywhere.
func BadName(name, problem string) error {
	return &Error{Kind: ErrConfig, Op: "use", Path: fmt.Sprintf("the name %q", name), Err: errors.New(problem), Remedy: "choose another name: names with single / between them, without . or .. and without / at the beginning or end"}
}

// CheckName checks the name of an object. It must be relative, slash-separated
// and valid UTF-8, without empty, "." or ".." elements, backslashes or control
// characters. The error is an ErrConfig.
func CheckName(name string) error {
	if problem := nameProblem(name); problem != "" {
		return BadName(name, problem)
	}
	return nil
}

// CheckObjectName checks a name as CheckName does, and also refuses a name in the control
// folder. The error is an ErrConfig.
func CheckObjectName(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if name == ControlFolder || strings.HasPrefix(name, ControlFolder+"/") {
		return BadName(name, ControlFolder+" is reserved for formetl's own files")
	}
	return nil
}

var runShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// CheckRun checks a run's id, which names a folder in the control folder. It is
// one element of ASCII letters, digits, '-', '_' and '.', and begins with a letter
// or digit. Names that the control folder itself uses are refused. The error is an
// ErrConfig.
func CheckRun(run string) error {
	// reserved are the prefixes of names that destinations use in the control folder.
	reserved := []string{IntentName, LeaseName, "checkpoint", "probe-", "put-", "staged"}
	var problem string
	switch {
	case run == "":
		problem = "it is empty"
	case len(run) > maxElement:
		problem = "it is too long"
	case !runShape.MatchString(run):
		problem = "it must consist of ASCII letters, digits, '-', '_' and '.', and begin with a letter or digit"
	case run == "lock" || slices.ContainsFunc(reserved, func(start string) bool { return strings.HasPrefix(run, start) }):
		problem = "it is a name that formetl uses in " + ControlFolder
	default:
		return nil
	}
	return &Error{Kind: ErrConfig, Op: "use", Path: fmt.Sprintf("the run id %q", run), Err: errors.New(problem)}
}

func nameProblem(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > maxName:
		return fmt.Sprintf("it is longer than %d bytes", maxName)
	case !utf8.ValidString(name):
		return "it is not valid UTF-8"
	case strings.HasPrefix(name, "/"):
		return "it begins with /"
	}
	for _, r := range name {
		if r < 0x20 || r == 0x7f {
			return "it contains a control character"
		}
		if r == '\\' {
			return "it contains a backslash, which Windows takes for /"
		}
	}
	for element := range strings.SplitSeq(name, "/") {
		switch {
		case element == "":
			return "it has / at its end, or twice in a row"
		case element == "." || element == "..":
			return fmt.Sprintf("%q in it could lead out of the output", element)
		case len(element) > maxElement:
			return fmt.Sprintf("one of the names in it is longer than %d bytes", maxElement)
		}
	}
	// IsLocal also refuses drive letters and device names of Windows.
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "it does not lead to a place below the output"
	}
	return ""
}

// ScopeName returns the name of a scope's file in the control folder, such as its lease. For
// the whole destination, scope "", it is base. For a single file it is base and a hash of the
// file's name. The hash hides the extension, so that a glob for data does not match.
func ScopeName(base, scope string) string {
	if scope == "" {
		return ControlFolder + "/" + base
	}
	digest := sha256.Sum256([]byte(scope))
	return ControlFolder + "/" + base + "-" + hex.EncodeToString(digest[:8])
}

// IsScopeName tells whether a name is one that ScopeName returns for base.
func IsScopeName(name, base string) bool {
	file, inFolder := strings.CutPrefix(name, ControlFolder+"/")
	return inFolder && !strings.Contains(file, "/") && (file == base || strings.HasPrefix(file, base+"-"))
}
