package cli

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stopsWithin is the three seconds that a command may take to end after a signal, and as
// much again for a slow machine.
const stopsWithin = 6 * time.Second

// unread returns the end of a small pipe that nobody reads, full if it is told so.
func unread(t *testing.T, full bool) *os.File {
	t.Helper()
	fds := make([]int, 2)
	if err := unix.Pipe2(fds, unix.O_CLOEXEC); err != nil { // os.Pipe would set the other process's end to another mode
		t.Fatal(err)
	}
	from, to := os.NewFile(uintptr(fds[0]), "from"), os.NewFile(uintptr(fds[1]), "to")
	t.Cleanup(func() { _, _ = from.Close(), to.Close() })
	size, err := unix.FcntlInt(to.Fd(), unix.F_SETPIPE_SZ, 16<<10)
	if err == nil && full {
		_, err = to.Write(make([]byte, size))
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// unreadTerminal returns a terminal whose screen stands still.
func unreadTerminal(t *testing.T) *os.File {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return terminal
}

// start starts the command as it starts in a shell.
func (p *child) start(t *testing.T) {
	t.Helper()
	// Under nohup a child would be started to ignore it.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
}

// stop sends a signal, and holds that the command ends by it in time.
func (p *child) stop(t *testing.T, s syscall.Signal) {
	t.Helper()
	began := time.Now()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	err := p.Wait()
	took := time.Since(began)
	var code int
	if status, ok := p.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	} else {
		code = p.code(t, err)
	}
	t.Logf("ended %s after the signal", took.Round(time.Millisecond))
	if want := 128 + int(s); code != want || took > stopsWithin {
		t.Errorf("ended with %d after %s, want %d within three seconds:\n%s", code, took, want, &p.stderr)
	}
}

// TestStopStalled stops commands whose output nobody reads. They end within three seconds.
func TestStopStalled(t *testing.T) {
	_, server := newService(testKey, largeForm("form1", 2000))
	t.Cleanup(server.Close)
	definition := fmt.Sprintf("version: 1\nname: stalled\nsource: {base_url: %q, account: acme, timezone: UTC}\nforms: [form1]\nextract: {from: 2025-01-01, to: 2025-03-01, window: 6h}\nload: [{path: form1.csv}]\n", server.URL)
	silent := filepath.Join(t.TempDir(), "silent") // whoever opens it waits for a writer
	if err := unix.Mkfifo(silent, 0o600); err != nil {
		t.Fatal(err)
	}
	export := []string{"export", "--form", "form1", "SERVICE"}
	run := []string{"run", "FILE", "--log-level", "debug"}
	for _, c := range []struct {
		name   string
		args   []string // FILE is a definition, SERVICE the flags of a service
		stalls string   // stdout, stderr, stderr at a terminal, or both
		signal syscall.Signal
	}{
		{"export", export, "stdout", syscall.SIGHUP},
		{"run", run, "stderr", syscall.SIGTERM},
		{"run with a bar", append(run, "--progress", "on"), "stderr", syscall.SIGINT},
		{"run at a terminal", run, "terminal", syscall.SIGTERM},
		{"help", []string{"--help"}, "both", syscall.SIGTERM},
		{"forms", []string{"forms", "SERVICE"}, "both", syscall.SIGINT},
		{"a silent key file", []string{"count", "--form", "form1", "--api-key-file", silent, "SERVICE"}, "both", syscall.SIGHUP},
		{"a silent definition", []string{"run", silent}, "both", syscall.SIGTERM},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := command(t, dir, testKey, filled(c.args, write(t, dir, "stalled.yaml", definition), server.URL)...)
			switch c.stalls {
			case "stdout":
				p.Stdout = unread(t, false)
			case "stderr":
				p.Stderr = unread(t, false)
			case "terminal":
				p.Stderr = unreadTerminal(t)
			default:
				p.Stdout, p.Stderr = unread(t, true), unread(t, true)
			}
			p.start(t)
			time.Sleep(700 * time.Millisecond) // most have come to their first line by now
			p.stop(t, c.signal)
		})
	}
}

// filled puts a definition and the flags of a service into arguments.
func filled(args []string, file, url string) (all []string) {
	for _, a := range args {
		switch a {
		case "FILE":
			all = append(all, file)
		case "SERVICE":
			all = append(all, serviceArgs(url)...)
		default:
			all = append(all, a)
		}
	}
	return all
}
