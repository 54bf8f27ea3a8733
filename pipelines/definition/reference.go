package definition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/transport"
)

// KeyVariable is the environment variable that holds the API key where a
// definition has no reference to it.
const KeyVariable = "FORMETL_API_KEY"

// maxKeyFile bounds a file that a key is read from, in bytes.
const maxKeyFile = 64 << 10

const keyRemedy = "write api_key: ${env:" + KeyVariable + "} or api_key: ${file:/run/secrets/key}"

// maxCommand bounds how long a command may take that prints a key.
const maxCommand = time.Minute

var (
	referenceShape = regexp.MustCompile(`^\$\{(env|file|cmd):([^{}]+)\}$`)
	variableShape  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// reference says where a text is read from: ${env:NAME}, ${file:PATH} or ${cmd:LINE}.
type reference struct{ kind, target string }

// readReference reads a reference to a key. The value is never shown, because it may
// be the key itself; never says that it must not be.
func readReference(v value, remedy, never string) (ref reference, ok bool) {
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

// remedy says what to do about an error of read. otherwise is what else helps where the
// reference names no file.
func (r reference) remedy(err error, otherwise string) string {
	switch {
	case r.kind == "env":
		return "set it, or " + otherwise
	case r.kind == "cmd":
		return "mend it, or " + otherwise
	case errors.Is(err, fs.ErrNotExist):
		return "create it, or change the path"
	}
	return "mend it, or change the path"
}

// read returns a text and where it was found. Paths are relative to dir, where commands
// run too. Blanks and line ends around the text are cut off. Errors never hold the text.
// With an error the text may still be a part of a key, so that the caller can redact it.
// The text of a command that is not run is "".
func (r reference) read(dir string, s Secrets) (text, where string, err error) {
	switch r.kind {
	case "env":
		where = "the environment variable " + r.target
		var set bool
		if text, set = s.Lookup(r.target); !set {
			return "", where, fmt.Errorf("%s is not set", where)
		}
	case "cmd":
		where = "what the command prints"
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
		return text, where, fmt.Errorf("%s holds more than one line, or a control character", where)
	}
	return text, where, nil
}

// Secrets is where references lead.
type Secrets struct {
	// Lookup reads the environment; nil is an empty one.
	Lookup func(name string) (string, bool)
	// Command runs the command line of ${cmd:LINE} in a folder and returns what it prints.
	// Where it is nil, no command is run, and the key that one would print is not known.
	Command func(dir, line string) (string, error)
}

// RunCommand runs a command line in a folder with the system's shell, and returns what it
// prints. The shell is /bin/sh, as for system(3), so that a service manager's short PATH
// does not matter. What it says on standard error is not shown, because that may hold a secret.
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
		return "", fmt.Errorf("the command failed (%v); run it by hand to see why", err) //nolint:errorlint // its exit code is not formetl's
	}
	return out.String(), nil
}

// limited keeps what is written to it, and refuses more than a key takes.
type limited struct{ strings.Builder }

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxKeyFile {
		return 0, errors.New("it prints more than a key")
	}
	return l.Builder.Write(p)
}

// readKey reads the API key. It is the key of the options, else the one that api_key
// refers to. Without api_key it is that of the default variable.
func (r *reader) readKey(source, v value, given bool) {
	ref, ok := reference{"env", KeyVariable}, true
	place, otherwise, problem := source, keyRemedy, "the definition names no API key, and %v"
	if given {
		place, otherwise, problem = v, "change the reference", "%v"
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
	case ok && r.secrets != nil:
		text, _, err := ref.read(r.dir, *r.secrets)
		if err != nil {
			place.Hidden().Fail(ref.remedy(err, otherwise), problem, err)
			return
		}
		r.def.Source.Key = transport.NewSecret(text)
	}
}

// KeyFromFile reads an API key from a file that holds nothing else. Blanks and
// line ends around the key are cut off. Errors never hold the file's content.
func KeyFromFile(file string) (transport.Secret, error) {
	text, _, err := reference{"file", file}.read("", Secrets{})
	if err != nil {
		return transport.Secret{}, err
	}
	return transport.NewSecret(text), nil
}
