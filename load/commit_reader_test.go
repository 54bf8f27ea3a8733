package load_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/formetl/formetl/load"
)

// readers polls a folder with read until commits, run here, are through, and
// at least once after that. It gives how many readings were whole.
func readers(t *testing.T, root string, commits func() error, read func(root string) (whole bool, err error)) int {
	t.Helper()
	var done atomic.Bool
	result := make(chan error, 1)
	whole := 0
	go func() {
		for last := false; !last; {
			last = done.Load()
			ok, err := read(root)
			if err != nil {
				result <- err
				return
			}
			if ok {
				whole++
			} else if last {
				result <- errors.New("the last reading was not whole")
				return
			}
		}
		result <- nil
	}()
	err := commits()
	done.Store(true)
	if err := errors.Join(err, <-result); err != nil {
		t.Fatal(err)
	}
	return whole
}

// A run writes its number on every day, or on some and leaves the others'.
func commitRuns(s shop, runs int) func() error {
	return func() error {
		for i := range runs {
			content := days{}
			for day := 1; day <= 4; day++ {
				content[day] = fmt.Sprintf("run%d day%d", i, day)
			}
			if err := s.run(fmt.Sprintf("run%d", i), content, nil); err != nil {
				return err
			}
		}
		return nil
	}
}

// oneRun tells an error where texts are not of one run, each day once.
func oneRun(texts []string) error {
	if len(texts) != 4 {
		return fmt.Errorf("%d parts are read: %q", len(texts), texts)
	}
	run, _, _ := strings.Cut(texts[0], " ")
	for i, text := range texts {
		if text != fmt.Sprintf("%s day%d", run, i+1) {
			return fmt.Errorf("a mixture of runs is read: %q", texts)
		}
	}
	return nil
}

func TestManifestReaderSeesOneRun(t *testing.T) {
	s := newShop(t)
	read := func(root string) (bool, error) {
		data, err := os.ReadFile(filepath.Join(root, load.ManifestName))
		if errors.Is(err, os.ErrNotExist) {
			return false, nil // before the first commit
		}
		if err != nil {
			return false, err
		}
		m, err := load.DecodeManifest(data)
		if err != nil {
			return false, err
		}
		var texts []string
		for _, p := range m.Parts {
			data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.Path)))
			if errors.Is(err, os.ErrNotExist) {
				return false, nil // the contract: read the manifest again
			}
			if err != nil {
				return false, err
			}
			texts = append(texts, string(data))
		}
		return true, oneRun(texts)
	}
	if whole := readers(t, s.d.String(), commitRuns(s, 15), read); whole == 0 {
		t.Error("no reading was whole")
	}
}

func TestGlobReaderSeesOneRun(t *testing.T) {
	s := newShop(t)
	root := s.d.String()
	mark := func() (string, error) {
		data, err := os.ReadFile(filepath.Join(root, load.SuccessName))
		if errors.Is(err, os.ErrNotExist) {
			return "", nil
		}
		return string(data), err
	}
	read := func(root string) (bool, error) {
		before, err := mark()
		if err != nil || before == "" {
			return false, err
		}
		found, err := filepath.Glob(filepath.Join(root, "dt=*", "*.csv"))
		if err != nil {
			return false, err
		}
		var texts []string
		for _, p := range found {
			data, err := os.ReadFile(p)
			if errors.Is(err, os.ErrNotExist) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			texts = append(texts, string(data))
		}
		after, err := mark()
		if err != nil || before != after {
			return false, err
		}
		return true, oneRun(texts)
	}
	readers(t, root, commitRuns(s, 15), read)
}

// One who reads the same manifest before and after the file read the file
// that it describes.
func TestFileManifestReader(t *testing.T) {
	s := newShop(t)
	root := s.d.String()
	commits := func() error {
		for i := range 20 {
			if err := s.runFile(fmt.Sprintf("run%d", i), fmt.Sprintf("run%d", i), nil); err != nil {
				return err
			}
		}
		return nil
	}
	read := func(string) (bool, error) {
		ctx := context.Background()
		before, version, err := load.ReadManifest(ctx, s.d, load.FileManifestName(fileName))
		if errors.Is(err, load.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		data, _, err := s.d.Get(ctx, fileName)
		if err != nil {
			return false, err
		}
		_, again, err := load.ReadManifest(ctx, s.d, load.FileManifestName(fileName))
		if errors.Is(err, load.ErrNotExist) || again != version {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if string(data) != before.RunID {
			return false, fmt.Errorf("the file holds %q and its manifest is of %s", data, before.RunID)
		}
		return true, nil
	}
	readers(t, root, commits, read)
}
