package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// apiKey is the API key of a life.
type apiKey string

// unsaid makes sure that a process wrote the API key nowhere that people read.
func (k apiKey) unsaid(o *outcome) error {
	for place, text := range map[string]string{"standard output": o.stdout, "standard error": o.stderr} {
		if k.in([]byte(text)) {
			return fmt.Errorf("%s holds the API key", place)
		}
	}
	return nil
}

// unwritten makes sure that no file of some folders holds the API key: outputs,
// reports, state.
func (k apiKey) unwritten(folders ...string) error {
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil && k.in(data) {
				err = fmt.Errorf("%s holds the API key", path)
			}
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// in tells whether a text holds the API key in any spelling.
func (k apiKey) in(text []byte) bool {
	for _, spelling := range []string{string(k), url.QueryEscape(string(k)), url.PathEscape(string(k)), string(k[2:14])} {
		if bytes.Contains(text, []byte(spelling)) {
			return true
		}
	}
	return false
}
