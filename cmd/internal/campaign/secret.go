package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// secret makes sure that a process wrote the API key nowhere that people read.
func (l *life) secret(o *outcome) error {
	for place, text := range map[string]string{"standard output": o.stdout, "standard error": o.stderr} {
		if l.tells([]byte(text)) {
			return fmt.Errorf("%s holds the API key", place)
		}
	}
	return nil
}

// secrets makes sure that no file of the life holds the API key: outputs,
// reports, state.
func (l *life) secrets() error {
	folders := append(make([]string, 0, 1+len(l.def.outputs)), l.dir)
	for _, out := range l.def.outputs {
		folders = append(folders, out.Dir)
	}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil && l.tells(data) {
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

// tells tells whether a text holds the API key in any spelling.
func (l *life) tells(text []byte) bool {
	for _, spelling := range []string{l.key, url.QueryEscape(l.key), url.PathEscape(l.key), l.key[2:14]} {
		if bytes.Contains(text, []byte(spelling)) {
			return true
		}
	}
	return false
}
