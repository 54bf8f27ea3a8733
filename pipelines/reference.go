package pipelines

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/formetl/formetl/extract/transport"
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

// readKey reads source.api_key: a reference, never the key. No message holds
// what stands there.
func (r *definitionReader) readKey(v value) {
	v.secret = true
	r.keyGiven = true
	text, ok := v.scalar()
	if !ok || text == "" {
		v.fail(keyRemedy, "the reference to the API key is missing")
		return
	}
	parts := referenceShape.FindStringSubmatch(text)
	if parts == nil {
		v.fail(keyRemedy+"; a key that has been in a file should be replaced", "the value is not a reference; an API key never stands in a definition")
		return
	}
	kind, target := parts[1], parts[2]
	if kind == "env" && !variableShape.MatchString(target) {
		v.fail(keyRemedy, "the reference names no environment variable")
		return
	}
	if r.o.WithoutSecrets || !r.o.Key.IsZero() {
		return
	}
	var key transport.Secret
	var err error
	if kind == "env" {
		key, err = keyFromEnv(r.o.Lookup, target)
	} else {
		key, err = KeyFromFile(r.local(target))
	}
	if err != nil {
		v.fail("set it, or change the reference", "%v", err)
		return
	}
	r.def.Source.Key = key
}

// defaultKey finds the key where the definition names none.
func (r *definitionReader) defaultKey(source value) {
	if !r.o.Key.IsZero() {
		r.def.Source.Key = r.o.Key
		return
	}
	if r.keyGiven || r.o.WithoutSecrets {
		return
	}
	key, err := keyFromEnv(r.o.Lookup, KeyVariable)
	if err != nil {
		source.secret = true
		source.fail("set it, or "+keyRemedy, "the definition names no API key, and %v", err)
		return
	}
	r.def.Source.Key = key
}

func keyFromEnv(lookup func(string) (string, bool), name string) (transport.Secret, error) {
	var text string
	set := false
	if lookup != nil {
		text, set = lookup(name)
	}
	if !set {
		return transport.Secret{}, fmt.Errorf("the environment variable %s is not set", name)
	}
	return checkedKey(text, "the environment variable "+name)
}

// KeyFromFile reads an API key from a file that holds nothing else. Blanks and
// line ends around it are cut off. Its errors never hold the file's content.
func KeyFromFile(file string) (transport.Secret, error) {
	data, err := readBounded(file, maxKeyFile)
	if err != nil {
		return transport.Secret{}, fmt.Errorf("the key file %s cannot be read: %w", file, systemReason(err))
	}
	return checkedKey(string(data), "the key file "+file)
}

func checkedKey(text, where string) (transport.Secret, error) {
	key := transport.NewSecret(strings.TrimPrefix(text, "\ufeff"))
	if key.IsZero() {
		return transport.Secret{}, fmt.Errorf("%s is empty", where)
	}
	for _, c := range strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")) {
		if c < ' ' || c == 0x7f {
			return transport.Secret{}, fmt.Errorf("%s holds more than a key: a line end or a control character", where)
		}
	}
	return key, nil
}

// readBounded reads a file of at most limit bytes. Folders and devices are
// refused before they are opened: opening a device may wait or have effects.
func readBounded(file string, limit int64) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Mode()&(os.ModeDir|os.ModeDevice|os.ModeCharDevice) != 0 {
		return nil, errors.New("it is a folder or a device, not a file")
	}
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("it is longer than %d bytes", limit)
	}
	return data, nil
}
