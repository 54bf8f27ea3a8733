package strictyaml

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

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
