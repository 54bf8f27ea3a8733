package demo

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/renameio/v2/maybe"

	"github.com/formetl/formetl/cmd/internal/owned"
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

// demoPipeline is the name of the demo's pipeline, which its manifests hold.
const demoPipeline = "demo"

// Check refuses to overwrite what the demo did not write, or what was changed since
// then: the definition, the CSV file and the dataset. Nor does it write through links or to devices.
func (d Folder) Check() error {
	for _, file := range []string{d.File(), d.path("feedback.csv"), d.path(keyName)} {
		if err := owned.CheckOrdinary(file); err != nil {
			return err
		}
	}
	for _, c := range []struct {
		path string
		ours func() (bool, error)
	}{
		{d.File(), d.ourDefinition},
		{d.path("feedback.csv"), d.ourFile},
		{d.path("lake/feedback"), d.ourDataset},
	} {
		ours, err := c.ours()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !ours {
			err = errors.New("it is there, and is not what formetl demo wrote")
		}
		if err != nil {
			return &load.CreateError{Op: "overwrite", Path: c.path, Err: err, Hint: "move it away, or give --dir another folder"}
		}
	}
	return nil
}

// signature is the first line of a definition that the demo wrote, with a sum of
// the lines below.
const signature = "# Written by formetl demo, which replaces it while it is unchanged (%.8x).\n"

func signed(text string) string {
	return fmt.Sprintf(signature, sha256.Sum256([]byte(text))) + text
}

func (d Folder) ourDefinition() (bool, error) {
	data, err := os.ReadFile(d.File())
	_, text, _ := strings.Cut(string(data), "\n")
	return string(data) == signed(text), err
}

// manifest reads a manifest, nil for one that cannot be the demo's.
func (d Folder) manifest(name string) *load.Manifest {
	data, err := os.ReadFile(d.path(name))
	if err != nil {
		return nil
	}
	m, err := load.DecodeManifest(data)
	if err != nil || m.Pipeline != demoPipeline {
		return nil
	}
	return m
}

// ourFile tells whether the CSV file is the one that its manifest describes.
func (d Folder) ourFile() (bool, error) {
	file, err := os.Open(d.path("feedback.csv"))
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // read only
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return false, err
	}
	m := d.manifest(load.FileManifestName("feedback.csv"))
	return m != nil && len(m.Parts) == 1 && m.Parts[0].SHA256 == fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// ourDataset tells whether a dataset is a demo's. That its parts are what its
// manifest describes is held by every run.
func (d Folder) ourDataset() (bool, error) {
	names, err := os.ReadDir(d.path("lake/feedback"))
	if err != nil || len(names) == 0 || len(names) == 1 && names[0].Name() == load.ControlFolder {
		return true, err // a run that was killed leaves no more
	}
	return d.manifest("lake/feedback/"+load.ManifestName) != nil, nil
}

// Key is the key of an earlier demo, or a new one, which it writes down.
func (d Folder) Key() (string, error) {
	data, err := os.ReadFile(d.path(keyName))
	if key := strings.TrimSpace(string(data)); err == nil && key != "" {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", &load.CreateError{Op: "read", Path: d.path(keyName), Err: err, Hint: "give --dir another folder"}
	}
	key := rand.Text()
	err = os.MkdirAll(string(d), 0o750)
	if err == nil {
		err = maybe.WriteFile(d.path(keyName), []byte(key+"\n"), 0o600)
	}
	if err != nil {
		return "", &load.CreateError{Op: "write", Path: d.path(keyName), Err: err, Hint: "give --dir another folder"}
	}
	return key, nil
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
	return string(bytes.TrimSpace(found[1]))
}

// WriteDefinition writes the definition that the demo runs and leaves.
func (d Folder) WriteDefinition(text string) error {
	if err := maybe.WriteFile(d.File(), []byte(signed(text)), 0o640); err != nil {
		return &load.CreateError{Op: "write", Path: d.File(), Err: err, Hint: "give --dir another folder"}
	}
	return nil
}
