package strictyaml

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadFile reads a file of at most limit bytes. The error does not repeat the file's path.
func ReadFile(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file) //nolint:gosec // the user names it
	var data []byte
	if err == nil {
		defer func() { _ = f.Close() }() // opened for reading only
		data, err = io.ReadAll(io.LimitReader(f, limit+1))
	}
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		return nil, failed.Err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("it is longer than %d bytes", limit)
	}
	return data, err
}
