package definition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/schemas/plain"
)

// A value of a definition may hold references: ${env:NAME}, ${file:PATH} and ${var:NAME}. A
// variable may be a part of another reference, as in ${env:KEY_${var:stage}}. $${ stands for ${.
// expandReferences replaces the references in all values before any value is read. In secrets
// (api_key, hmac_key, dsn), which may also hold ${cmd:LINE}, it replaces ${var:NAME} alone: the
// readers of these keys resolve the other references.
const (
	referenceBegin  = "${"
	referenceEscape = "$${"
)

var (
	// variableInText matches the escape $${ and ${var:NAME}. referenceInText matches the escape
	// and a reference of any kind, also one whose closing brace is missing.
	variableInText  = regexp.MustCompile(`\$\$\{|\$\{var:([^}]*)\}`)
	referenceInText = regexp.MustCompile(`\$\$\{|\$\{([a-z]+):([^}]*)(\}?)`)
	referenceKinds  = []string{"cmd", "env", "file", "var"}
	// inSecret matches a reference that a secret may hold: of the kinds env, file and cmd.
	inSecret      = regexp.MustCompile(`\$\{(env|file|cmd):([^{}]+)\}`)
	variableShape = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expandReferences replaces the references in all values of a definition, and stores in
// Definition.Variables the names of variables that the definition declares or refers to.
func (r *reader) expandReferences(root value) {
	entries, _ := root.Entries() // a root that is no group of keys is refused later, by r.root
	values, known := map[string]string{}, map[string]bool{}
	for _, e := range entries {
		if e.Key() == "vars" {
			r.readVariables(e, values, known)
		}
	}
	maps.Copy(values, r.o.Variables)
	for _, e := range entries {
		if e.Key() != "vars" {
			expandTexts(e, func(v value, text string) string { return r.expanded(v, text, values, known) })
		}
	}
	r.def.Variables = slices.Sorted(maps.Keys(known))
}

// readVariables reads the section vars:, names of variables with their defaults, which it adds to
// values where --var gives no value. It marks every name in known. A variable without a default
// needs a value by --var.
func (r *reader) readVariables(v value, values map[string]string, known map[string]bool) {
	expandTexts(v, func(v value, text string) string { return r.expanded(v, text, nil, nil) })
	entries, _ := v.Entries()
	for _, e := range entries {
		name := e.Key()
		switch _, given := r.o.Variables[name]; {
		case !variableShape.MatchString(name):
			e.Fail("write a name of letters, digits and _", "%s is not the name of a variable", Quote(name))
			continue
		case known[name]:
			e.Fail("keep one of them", "the variable %s is defined twice", Quote(name))
		case !given && !e.IsEmpty():
			if text, ok := e.Word(); ok {
				values[name] = text
			}
		}
		known[name] = true
	}
}

// expanded returns text, the text of the value v, with its references replaced. values are the
// values of ${var:NAME} by name. If known is nil, as for the defaults under vars, ${var:NAME} is
// refused; otherwise names that are used are marked in known.
func (r *reader) expanded(v value, text string, values map[string]string, known map[string]bool) string {
	if !strings.Contains(text, referenceBegin) {
		return text
	}
	secret := slices.Contains([]string{"api_key", "hmac_key", "dsn"}, v.Key())
	fail := func(remedy, format string, args ...any) string {
		v.Fail(remedy, format, args...)
		return ""
	}
	out := variableInText.ReplaceAllStringFunc(text, func(match string) string {
		if match == referenceEscape {
			return match
		}
		name := variableInText.FindStringSubmatch(match)[1]
		if known == nil {
			return fail("write the value here", "a variable cannot refer to another variable")
		}
		if value, given := values[name]; given {
			known[name] = true
			return value
		}
		remedy := fmt.Sprintf("add --var %s=VALUE to the command, or a default under vars:", name)
		if near := plain.Suggest(name, slices.Sorted(maps.Keys(values))); near != "" && !known[name] {
			remedy = near + " Otherwise " + remedy
		}
		return fail(remedy, "the variable %s has no value", Quote(name))
	})
	out = referenceInText.ReplaceAllStringFunc(out, func(match string) string {
		parts := referenceInText.FindStringSubmatch(match)
		switch kind := parts[1]; {
		case match == referenceEscape:
			return referenceBegin
		case parts[3] == "":
			return fail("close it with }, or write $${ if it is not a reference", "the reference ${%s:… has no closing brace", kind)
		case kind == "var":
			return fail("write the value here", "a variable cannot refer to another variable")
		case secret:
			return match
		case !slices.Contains(referenceKinds, kind):
			return fail(suggest(kind, referenceKinds, "write ${env:NAME}, ${file:PATH} or ${var:NAME} (given by --var NAME=VALUE)")+"; if it is not a reference, write $${",
				"${%s:…} is not a kind of reference", kind)
		case kind == "cmd":
			return fail("write ${env:…}, ${file:…} or ${var:…} here", "${cmd:…} is for secrets only (api_key, hmac_key, dsn)")
		}
		ref := reference{parts[1], parts[2]}
		value, _, err := ref.read(r.dir, r.o.Secrets)
		if err != nil {
			return fail(ref.remedy(err, "use ${var:NAME}, with a default under vars:"), "%v", err)
		}
		if ref.kind == "file" { // it may be the file of a key
			r.doc.Redact(transport.NewSecret(value).Redact)
		}
		return value
	})
	if !secret {
		r.expansions = append(r.expansions, expandedValue{v, out})
	}
	return out
}

// expandedValue is a value of the file, with its text after its references were replaced.
type expandedValue struct {
	value
	text string
}

// keepKeyAway refuses values other than api_key into which a reference has put the API key: such
// values stand in file names, logs and manifests.
func (r *reader) keepKeyAway() {
	for _, e := range r.expansions {
		if r.key.Redact(e.text) != e.text {
			e.Hidden().Fail("refer to another variable or file", "this value would contain the API key, which only api_key may do")
		}
	}
}

// KeyVariable is the environment variable that holds the API key for a definition without
// api_key.
const KeyVariable = "FORMETL_API_KEY"

// HMACKeyVariable is the environment variable that holds the key of pii: hmac for a schema
// without hmac_key.
const HMACKeyVariable = "FORMETL_HMAC_KEY"

// key describes a secret, the API key or the key of pii: hmac, that never stands in a definition
// or schema: a reference leads to it, or else the environment variable holds it. The other
// fields are texts of messages.
type key struct{ variable, remedy, never, lacking string }

var (
	apiKey = key{
		KeyVariable, "write api_key: ${env:NAME} or api_key: ${file:PATH}",
		"the API key itself must not be in a definition", "the definition has no api_key, and %v",
	}
	hmacKey = key{
		HMACKeyVariable, "write hmac_key: ${env:NAME} or hmac_key: ${file:PATH}",
		"the key itself must not be in a schema", "hmac needs a key, the schema has no hmac_key, and %v",
	}
)

// reference reads v, the reference to a key, such as ${env:NAME}. If the file has none, it
// returns the reference to the key's environment variable. ok is false after a problem. Messages
// never show the value, because it may be the key itself.
func (k key) reference(v value) (ref reference, ok bool) {
	if !v.Given() {
		return reference{"env", k.variable}, true
	}
	v = v.Hidden()
	text, _ := v.Scalar()
	parts := inSecret.FindStringSubmatch(text)
	switch {
	case text == "":
		v.Fail(k.remedy, "the reference to the key is missing")
	case parts == nil || parts[0] != text:
		v.Fail(k.remedy+"; if it was the real key, use a new one from now on, because others may have read it", "the value is not a reference: %s", k.never)
	case parts[1] == "env" && !variableShape.MatchString(parts[2]):
		v.Fail(k.remedy, "the reference has no valid name of an environment variable")
	default:
		return reference{parts[1], parts[2]}, true
	}
	return reference{}, false
}

// fail reports err, why a key cannot be read or used: at v, the reference to the key, or at the
// value that needs the key if the file has no reference.
func (k key) fail(v, needs value, ref reference, err error) {
	if v.Given() {
		v.Hidden().Fail(ref.remedy(err, "name another variable or file"), "%v", err)
		return
	}
	needs.Hidden().Fail(ref.remedy(err, k.remedy), k.lacking, err)
}

// readKey sets the API key of the definition: the one of LoadOptions.Key, or else the one that
// api_key, the value v of the section source, refers to. Where no key is to be read, it is only
// looked for, so that no problem shows it.
func (r *reader) readKey(source, v value) {
	ref, ok := apiKey.reference(v)
	switch {
	case !r.o.Key.IsZero():
		r.key = r.o.Key
	case ok && (r.secrets != nil || ref.kind != "cmd"):
		text, where, err := ref.read(r.dir, r.o.Secrets)
		if err != nil {
			if r.secrets != nil {
				apiKey.fail(v, source, ref, err)
			}
			return
		}
		r.key = transport.NewSecret(text).From(where)
	}
	if r.secrets != nil || !r.o.Key.IsZero() {
		r.def.Source.Key = r.key
	}
}

// KeyFromFile reads an API key from a file that holds nothing but the key. Blanks and line ends
// around the key are cut off. Errors never hold the file's content.
func KeyFromFile(file string) (transport.Secret, error) {
	text, where, err := reference{"file", file}.read("", Secrets{})
	if err != nil {
		return transport.Secret{}, err
	}
	return transport.NewSecret(text).From(where), nil
}

// Secrets resolves the references of a definition to the environment and to commands.
type Secrets struct {
	// Lookup returns the value of an environment variable, false if it is not set. nil stands
	// for an empty environment.
	Lookup func(name string) (string, bool)
	// Command runs the command line of ${cmd:LINE} in a folder and returns what that prints. If
	// Command is nil, no command is run, and a key that a command would print is unknown.
	Command func(dir, line string) (string, error)
}

// maxKeyFile is the most bytes of a file that ${file:PATH} leads to, and of what the command of
// ${cmd:LINE} prints.
const maxKeyFile = 64 << 10

// reference is ${env:NAME}, ${file:PATH} or ${cmd:LINE}, divided into its kind and what follows
// the colon.
type reference struct{ kind, target string }

// remedy says what to do about an error of reference.read. alternative is what helps with an
// environment variable besides setting it.
func (r reference) remedy(err error, alternative string) string {
	switch {
	case r.kind == "env":
		return "set it, or " + alternative
	case r.kind == "cmd":
		return "run it by hand to see why; then fix it, or write ${env:NAME} or ${file:PATH} in its place"
	case errors.Is(err, fs.ErrNotExist):
		return "create the file, or change the path"
	}
	return "fix the file, or change the path"
}

// read returns the text that the reference leads to, and in words where it was found. Paths are
// relative to dir, where commands run too. Blanks and line ends around the text are cut off.
// Errors never hold the text. With an error, text may still be a part of a key, for the caller to
// redact. If s.Command is nil, the text of ${cmd:LINE} is "".
func (r reference) read(dir string, s Secrets) (text, where string, err error) {
	switch r.kind {
	case "env":
		where = "the environment variable " + r.target
		set := false
		if s.Lookup != nil {
			text, set = s.Lookup(r.target)
		}
		if !set {
			return "", where, fmt.Errorf("%s is not set", where)
		}
	case "cmd":
		where = "the output of the command"
		if s.Command == nil {
			return "", where, nil
		}
		if text, err = s.Command(dir, r.target); err != nil {
			return "", where, err
		}
	default:
		file := r.target
		if dir != "" && !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		where = "the file " + file
		data, err := readFile(file, maxKeyFile)
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
		return text, where, fmt.Errorf("%s has more than one line, or a control character", where)
	}
	return text, where, nil
}

// maxCommand is how long the command of ${cmd:LINE}, which prints a key, may take.
const maxCommand = time.Minute

// RunCommand runs a command line in a folder with the system's shell, and returns what the command
// prints on standard output. The shell is /bin/sh, as for system(3), so that a service manager's
// short PATH does not matter; on Windows it is cmd. Standard error is dropped, because it may
// hold a secret. The error is of a command that fails or takes longer than a minute.
func RunCommand(ctx context.Context, dir, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, maxCommand)
	defer cancel()
	shell := []string{"/bin/sh", "-c"}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/C"}
	}
	var out limited
	cmd := exec.CommandContext(ctx, shell[0], shell[1], line)
	cmd.Dir, cmd.Stdout, cmd.WaitDelay = dir, &out, time.Second
	switch err := cmd.Run(); {
	case ctx.Err() != nil && context.Cause(ctx) == context.DeadlineExceeded: //nolint:errorlint // a cause is not wrapped
		return "", fmt.Errorf("the command took longer than %s", maxCommand)
	case err != nil:
		return "", fmt.Errorf("the command failed (%v)", err) //nolint:errorlint // the command's exit code must not become formetl's
	}
	return out.String(), nil
}

// limited keeps what a command writes to it, and refuses more than maxKeyFile bytes.
type limited struct{ strings.Builder }

// Write implements io.Writer. The error is of more than maxKeyFile bytes.
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxKeyFile {
		return 0, errors.New("its output is longer than a key")
	}
	return l.Builder.Write(p)
}
