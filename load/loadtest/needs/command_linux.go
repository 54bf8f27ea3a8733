package needs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// quiet is how long the go command must have done nothing: no process of its
// own runs, and it takes no time of the processor.
const quiet = 1500 * time.Millisecond

// waitForOthers waits until this is the last process that the go command runs,
// and tells whether it is.
func waitForOthers(until time.Time) bool {
	if !underGo() {
		return true
	}
	before, since := "", time.Now()
	for time.Now().Before(until) {
		if now := activity(); now != before {
			before, since = now, time.Now()
		} else if time.Since(since) > quiet {
			return true
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

// underGo tells whether the go command started this process.
func underGo() bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", os.Getppid()))
	return err == nil && strings.HasPrefix(string(name), "go")
}

// activity differs from one moment to the next while the go command works, or
// has another process work for it.
func activity() string {
	parent := strconv.Itoa(os.Getppid())
	processes, _ := filepath.Glob("/proc/[0-9]*/stat") // fails for a bad pattern only
	used := ""
	for _, file := range processes {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The name, which may hold anything, ends with the last bracket.
		fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
		id := filepath.Base(filepath.Dir(file))
		switch {
		case id == parent:
			used = strings.Join(fields[11:13], " ")
		case fields[1] == parent && id != strconv.Itoa(os.Getpid()):
			return time.Now().String()
		}
	}
	return used
}

// commandOutput is the standard output of the go command that runs the tests,
// or this process' own where there is no such command.
func commandOutput() (w io.Writer, done func()) {
	if !underGo() {
		return os.Stdout, func() {}
	}
	if file, err := shared(); err == nil {
		return file, func() { _ = file.Close() }
	}
	file, err := opened()
	if err != nil {
		return os.Stdout, func() {} // shown with -v only
	}
	return file, func() { _ = file.Close() }
}

// shared is the command's own standard output. Some systems give it to an
// administrator only.
func shared() (*os.File, error) {
	process, err := unix.PidfdOpen(os.Getppid(), 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(process) }()
	output, err := unix.PidfdGetfd(process, unix.Stdout, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(output), "the output of go test"), nil //nolint:gosec // it is not negative
}

// opened is what the command's standard output goes to, opened once more. A file
// is written to behind the line that the command has yet to write, since the two
// do not know of each other's place.
func opened() (*os.File, error) {
	path := fmt.Sprintf("/proc/%d/fd/1", os.Getppid())
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&(fs.ModeSocket|fs.ModeDir) != 0 {
		return nil, errors.New("it cannot be opened once more")
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		if _, err := file.WriteString(strings.Repeat(" ", lineLength-1) + "\n"); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	return file, nil
}

// lineLength is more than the go command writes of one package.
const lineLength = 120
