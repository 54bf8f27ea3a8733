package demo

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/renameio/v2/maybe"

	"github.com/formetl/formetl/load"
)

// Folder is the folder that the demo writes under, as it was given.
type Folder string

func (d Folder) path(name string) string {
	return filepath.Join(string(d), filepath.FromSlash(name))
}

// File is the path of the definition.
func (d Folder) File() string { return d.path("feedback.yaml") }

// keyName is the file of the key that the demo's service asks for.
const keyName = "api-key"

// elsewhere is what to do about a folder that the demo cannot use.
const elsewhere = "give --dir another folder"

// Check refuses a folder that is not empty, unless its definition is as an earlier demo
// left it.
func (d Folder) Check() error {
	names, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
		return nil
	}
	if err != nil {
		return &load.CreateError{Op: "read", Path: string(d), Err: err, Hint: elsewhere}
	}
	text, err := os.ReadFile(d.File())
	if err == nil && string(text) == Definition(d.Address()) {
		return nil
	}
	return &load.CreateError{
		Op: "write to", Path: string(d), Hint: "move it away, or " + elsewhere,
		Err: errors.New("it is not empty, and its feedback.yaml is not as formetl demo left it"),
	}
}

// Address is where the service of an earlier demo listened, "" without one. So the
// same demo has the same definition.
func (d Folder) Address() string {
	data, err := os.ReadFile(d.File())
	if err != nil {
		return ""
	}
	found := regexp.MustCompile(`base_url: http://(127\.0\.0\.1:\d+)\n`).FindSubmatch(data)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// Write writes the definition that the demo runs and leaves, and returns the key of its
// service: that of an earlier demo, or a new one, which it writes down. The definition
// comes first, because Check knows a demo's folder by it.
func (d Folder) Write(text string) (key string, err error) {
	if err := d.write("feedback.yaml", text, 0o640); err != nil {
		return "", err
	}
	data, err := os.ReadFile(d.path(keyName))
	if key := strings.TrimSpace(string(data)); err == nil && key != "" {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", &load.CreateError{Op: "read", Path: d.path(keyName), Err: err, Hint: elsewhere}
	}
	key = rand.Text()
	return key, d.write(keyName, key+"\n", 0o600)
}

func (d Folder) write(name, text string, mode fs.FileMode) error {
	err := os.MkdirAll(string(d), 0o750)
	if err == nil {
		err = maybe.WriteFile(d.path(name), []byte(text), mode)
	}
	if err != nil {
		return &load.CreateError{Op: "write", Path: d.path(name), Err: err, Hint: elsewhere}
	}
	return nil
}
