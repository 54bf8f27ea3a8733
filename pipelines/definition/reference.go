package definition

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/internal/strictyaml"
)

// KeyVariable is the environment variable that holds the API key where a
// definition has no reference to it.
const KeyVariable = "FORMETL_API_KEY"

// maxKeyFile bounds a file that a key is read from, in bytes.
const maxKeyFile = 64 << 10

const keyRemedy = "write api_key: ${env:" + KeyVariable + "} or api_key: ${file:/run/secrets/key}"

var (
	referenceShape = regexp.MustCompile(`^\$\{(env|file):([^{}]+)\}$`)
	variableShape  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// reference says where a key is read from: ${env:NAME} or ${file:PATH}.
type reference struct{ kind, target string }

// readReference reads a reference to a key. The value is never shown, because it may
// be the key itself; never says that it must not be.
func readReference(v strictyaml.Value, remedy, never string) (ref reference, ok bool) {
	v = v.Hidden()
	text, _ := v.Scalar()
	parts := referenceShape.FindStringSubmatch(text)
	switch {
	case parts == nil:
		v.Fail(remedy+"; a key that has been in a file should be replaced", "the value is not a reference; %s", never)
		return reference{}, false
	case parts[1] == "env" && !variableShape.MatchString(parts[2]):
		v.Fail(remedy, "the reference names no environment variable")
		return reference{}, false
	}
	return reference{parts[1], parts[2]}, true
}

// read returns the text of a key and where it was found. Paths are relative to dir,
// lookup reads the environment. Blanks and line ends around the text are cut off.
// Errors never hold the text. With an error the text may still be a part of a key,
// so that the caller can redact it.
func (r reference) read(dir string, lookup func(name string) (string, bool)) (text, where string, err error) {
	if r.kind == "env" {
		where = "the environment variable " + r.target
		var set bool
		if text, set = lookup(r.target); !set {
			return "", where, fmt.Errorf("%s is not set", where)
		}
	} else {
		file := r.target
		if dir != "" && !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		where = "the key file " + file
		data, err := strictyaml.ReadFile(file, maxKeyFile)
		if err != nil {
			return "", where, fmt.Errorf("%s cannot be read: %w", where, err)
		}
		text = string(data)
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	if text == "" {
		return "", where, fmt.Errorf("%s is empty", where)
	}
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return text, where, fmt.Errorf("%s holds more than a key: a line end or a control character", where)
	}
	return text, where, nil
}

// readKey reads the API key. It is the key of the options, else the one that api_key
// refers to. Without api_key it is that of the default variable.
func (r *reader) readKey(source, v strictyaml.Value, given bool) {
	ref, ok := reference{"env", KeyVariable}, true
	place, remedy, problem := source, "set it, or "+keyRemedy, "the definition names no API key, and %v"
	if given {
		place, remedy, problem = v, "set it, or change the reference", "%v"
		if text, scalar := v.Scalar(); !scalar || text == "" {
			v.Hidden().Fail(keyRemedy, "the reference to the API key is missing")
			ok = false
		} else {
			ref, ok = readReference(v, keyRemedy, "an API key never stands in a definition")
		}
	}
	switch {
	case !r.o.Key.IsZero():
		r.def.Source.Key = r.o.Key
	case ok && r.o.Lookup != nil:
		text, _, err := ref.read(r.dir, r.o.Lookup)
		if err != nil {
			place.Hidden().Fail(remedy, problem, err)
			return
		}
		r.def.Source.Key = transport.NewSecret(text)
	}
}

// KeyFromFile reads an API key from a file that holds nothing else. Blanks and
// line ends around the key are cut off. Errors never hold the file's content.
func KeyFromFile(file string) (transport.Secret, error) {
	text, _, err := reference{"file", file}.read("", nil)
	if err != nil {
		return transport.Secret{}, err
	}
	return transport.NewSecret(text), nil
}
