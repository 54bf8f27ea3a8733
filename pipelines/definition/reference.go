package definition

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/formetl/formetl/extract"
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

// readKey reads source.api_key, which is a reference and never the key. No message
// shows what stands there.
func (r *reader) readKey(v strictyaml.Value) {
	v = v.Hidden()
	r.keyGiven = true
	text, ok := v.Scalar()
	if !ok || text == "" {
		v.Fail(keyRemedy, "the reference to the API key is missing")
		return
	}
	parts := referenceShape.FindStringSubmatch(text)
	if parts == nil {
		v.Fail(keyRemedy+"; a key that has been in a file should be replaced", "the value is not a reference; an API key never stands in a definition")
		return
	}
	kind, target := parts[1], parts[2]
	if kind == "env" && !variableShape.MatchString(target) {
		v.Fail(keyRemedy, "the reference names no environment variable")
		return
	}
	if r.o.WithoutSecrets || !r.o.Key.IsZero() {
		return
	}
	var key extract.Secret
	var err error
	if kind == "env" {
		key, err = keyFromEnv(r.o.Lookup, target)
	} else {
		key, err = KeyFromFile(r.local(target))
	}
	if err != nil {
		v.Fail("set it, or change the reference", "%v", err)
		return
	}
	r.def.Source.Key = key
}

// defaultKey sets the key that is not read from the definition's reference: the one
// of the options, else that of the default variable if there is no reference.
func (r *reader) defaultKey(source strictyaml.Value) {
	if !r.o.Key.IsZero() {
		r.def.Source.Key = r.o.Key
		return
	}
	if r.keyGiven || r.o.WithoutSecrets {
		return
	}
	key, err := keyFromEnv(r.o.Lookup, KeyVariable)
	if err != nil {
		source.Hidden().Fail("set it, or "+keyRemedy, "the definition names no API key, and %v", err)
		return
	}
	r.def.Source.Key = key
}

func keyFromEnv(lookup func(string) (string, bool), name string) (extract.Secret, error) {
	var text string
	set := false
	if lookup != nil {
		text, set = lookup(name)
	}
	if !set {
		return extract.Secret{}, fmt.Errorf("the environment variable %s is not set", name)
	}
	return checkedKey(text, "the environment variable "+name)
}

// KeyFromFile reads an API key from a file that holds nothing else. Blanks and
// line ends around the key are cut off. Errors never hold the file's content.
func KeyFromFile(file string) (extract.Secret, error) {
	data, err := strictyaml.ReadFile(file, maxKeyFile)
	if err != nil {
		return extract.Secret{}, fmt.Errorf("the key file %s cannot be read: %w", file, err)
	}
	return checkedKey(string(data), "the key file "+file)
}

func checkedKey(text, where string) (extract.Secret, error) {
	key := extract.NewSecret(strings.TrimPrefix(text, "\ufeff"))
	if key.IsZero() {
		return extract.Secret{}, fmt.Errorf("%s is empty", where)
	}
	for _, c := range strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")) {
		if c < ' ' || c == 0x7f {
			return extract.Secret{}, fmt.Errorf("%s holds more than a key: a line end or a control character", where)
		}
	}
	return key, nil
}
