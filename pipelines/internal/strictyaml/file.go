package strictyaml

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/formetl/formetl/schemas/nearest"
)

// Neighbour is the YAML file beside the path of a file that is not there whose name is
// nearest to it, "" if none is near. A name that differs in its extension alone is
// nearest, such as feedback.yaml to feedback.yml or feedback.
func Neighbour(file string) string {
	folder, name := filepath.Split(file)
	entries, _ := os.ReadDir(filepath.Clean(folder)) // "" is "."
	var names []string
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		if stem := strings.TrimSuffix(e.Name(), ext); stem == name || stem == strings.TrimSuffix(name, filepath.Ext(name)) {
			return folder + e.Name()
		}
		names = append(names, e.Name())
	}
	if near := nearest.Word(name, names); near != "" {
		return folder + near
	}
	return ""
}

// ReadFile reads a file of at most limit bytes. Folders and devices are
// refused before they are opened, because opening a device may wait or have
// effects. The error does not repeat the file's path.
func ReadFile(file string, limit int64) ([]byte, error) {
	data, err := readBounded(filepath.Clean(file), limit)
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return data, err
}

func readBounded(file string, limit int64) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Mode()&(os.ModeDir|os.ModeDevice|os.ModeCharDevice) != 0 {
		return nil, errors.New("it is a folder or a device, not a file")
	}
	f, err := os.Open(file)
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
