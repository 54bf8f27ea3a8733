package needs

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// Note is what one test left out.
type Note struct {
	Test  string `json:"test"`
	What  string `json:"what"`  // why it was left out
	Whole bool   `json:"whole"` // nothing of the test ran, else a short version
}

// folder is where the notes of this tree lie, a file for each package. They
// outlive the test program, since `go test` shows an earlier result again where
// nothing has changed. What a result depends on is part of the folder's name.
func folder() string {
	key := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%t\n%t", root(), given.path, All(), cgo))
	return filepath.Join(given.cache, "formetl-test", "left-out", fmt.Sprintf("%x", key[:8]))
}

// given is what the go command gave to this test program, before its tests gave
// themselves another environment.
var given = environment()

type environs struct{ path, cache string }

func environment() environs {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return environs{os.Getenv("PATH"), cache}
}

// root is the folder of the module, or a path that stands for it in a build
// that tells no folders.
func root() string {
	_, source, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(source))))
}

// notes is the file of this test program, nil where nothing is to be noted. It
// is emptied when the first test asks for something.
var notes = sync.OnceValues(func() (*os.File, error) {
	if !wholePackage() {
		return nil, nil
	}
	name, ok := packageName()
	if !ok {
		return nil, nil
	}
	if err := os.MkdirAll(folder(), 0o750); err != nil {
		return nil, err
	}
	return os.Create(filepath.Join(folder(), url.PathEscape(name)))
})

// wholePackage tells whether all tests of the package are run: else what they
// leave out says nothing of `go test ./...`.
func wholePackage() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.bench", "test.fuzz"} {
		if f := flag.Lookup(name); f == nil || f.Value.String() != "" {
			return false
		}
	}
	return true
}

// packageName is the import path of the package under test.
func packageName() (string, bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	return strings.TrimSuffix(info.Path, ".test"), true // a command's has no such end
}

// note writes a note down. With nil it only says that this run has none so far.
func note(n *Note) {
	_ = environment() // an earlier result is shown again only where this is the same
	file, err := notes()
	if file == nil && err == nil || n == nil {
		return
	}
	line, failed := json.Marshal(n)
	if err == nil {
		err = failed
	}
	if err == nil {
		_, err = file.Write(append(line, '\n'))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s is left out, which cannot be noted: %v\n", n.Test, err)
	}
}

// leftOut returns all notes of this tree by package, without those of packages
// that are gone.
func leftOut() (map[string][]Note, error) {
	files, err := filepath.Glob(filepath.Join(folder(), "*"))
	if err != nil {
		return nil, err
	}
	all := map[string][]Note{}
	for _, file := range files {
		name, err := url.PathUnescape(filepath.Base(file))
		if err != nil {
			return nil, err
		}
		if gone(name) {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(data)) {
			var n Note
			if err := json.Unmarshal([]byte(line), &n); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			all[name] = append(all[name], n)
		}
	}
	return all, nil
}

// gone tells whether a package was removed since it noted something.
func gone(name string) bool {
	if _, err := os.Stat(filepath.Join(root(), "go.mod")); err != nil {
		return false // nobody can tell
	}
	_, err := os.Stat(filepath.Join(root(), filepath.FromSlash(shortName(name))))
	return err != nil
}
