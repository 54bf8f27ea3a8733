package cli

import (
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/formetl/formetl/extract/formservice"
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

// untilCalm waits until a service was asked, and is asked no more.
func untilCalm(service *formservice.Server) {
	asked := 0
	for calm := time.Now(); time.Since(calm) < time.Second; time.Sleep(20 * time.Millisecond) {
		if n := len(service.Log()); n != asked || n == 0 {
			asked, calm = n, time.Now()
		}
	}
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

// TestStopStalled stops commands whose output nobody reads. They end within three seconds,
// and what comes next asks for nothing that was read.
func TestStopStalled(t *testing.T) {
	const definition = `version: 1
name: stalled
source: {base_url: %q, account: acme, timezone: UTC}
forms: [form1]
extract: {from: 2025-01-01, to: 2025-03-01, window: 1d}
load: [{path: "lake/", format: ndjson, partition: day}]
`
	for _, c := range []struct {
		name   string
		args   []string // FILE is a definition, SERVICE the flags of a service
		stalls string   // stdout, stderr, or stderr at a terminal
		signal syscall.Signal
	}{
		{"export", []string{"export", "--form", "form1", "SERVICE"}, "stdout", syscall.SIGTERM},
		{"export hung up", []string{"export", "--form", "form1", "SERVICE"}, "stdout", syscall.SIGHUP},
		{"export NDJSON", []string{"export", "--form", "form1", "--format", "ndjson", "SERVICE"}, "stdout", syscall.SIGINT},
		{"run", []string{"run", "FILE", "--log-level", "debug"}, "stderr", syscall.SIGTERM},
		{"run as JSON", []string{"run", "FILE", "--log-level", "debug", "--log-format", "json"}, "stderr", syscall.SIGINT},
		{"run hung up", []string{"run", "FILE", "--log-level", "debug"}, "stderr", syscall.SIGHUP},
		{"run with a bar", []string{"run", "FILE", "--progress", "on", "--log-level", "debug"}, "stderr", syscall.SIGTERM},
		{"run at a terminal", []string{"run", "FILE", "--log-level", "debug"}, "terminal", syscall.SIGTERM},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			// Results without a date, and the sample for the schema, are asked for again.
			form := formservice.Generate(formservice.GenerateOptions{Directory: "form1", Results: 2000, Items: 6, NoUnfinished: true, NoLate: true, To: time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)})
			service, server := newService(testKey, form)
			defer server.Close()
			file := write(t, dir, "stalled.yaml", fmt.Sprintf(definition, server.URL))
			args := filled(c.args, file, server.URL)
			elsewhere := t.TempDir()
			if p := command(t, elsewhere, testKey, filled(c.args, write(t, elsewhere, "stalled.yaml", fmt.Sprintf(definition, server.URL)), server.URL)...); p.Run() != nil {
				t.Fatalf("undisturbed:\n%s", &p.stderr)
			}
			whole := len(service.Log())
			service.Reset()

			p := command(t, dir, testKey, args...)
			switch c.stalls {
			case "stdout":
				p.Stdout = unread(t, false)
			case "stderr":
				p.Stderr = unread(t, false)
			case "terminal":
				p.Stderr = unreadTerminal(t)
			}
			p.start(t)
			untilCalm(service)
			p.stop(t, c.signal)
			server.CloseClientConnections()
			first := len(service.Log())
			p = command(t, dir, testKey, args...)
			if code := p.code(t, p.Run()); code != 0 {
				t.Fatalf("the next one ended with %d:\n%s", code, &p.stderr)
			}
			both := len(service.Log())
			t.Logf("%d requests undisturbed; %d, and then %d", whole, first, both-first)
			if 100*both > 115*whole {
				t.Errorf("%d requests and then %d, undisturbed %d", first, both-first, whole)
			}
			if c.args[0] == "run" {
				if got, want := files(t, filepath.Join(dir, "lake")), files(t, filepath.Join(elsewhere, "lake")); !maps.Equal(got, want) {
					t.Errorf("after the stop the files are others:\n%v\nand undisturbed\n%v", got, want)
				}
			}
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

// TestStopAnyStalled stops each command while both its streams are full.
func TestStopAnyStalled(t *testing.T) {
	dir := t.TempDir()
	_, server := newService(testKey, largeForm("form1", 300))
	defer server.Close()
	file := write(t, dir, "any.yaml", fmt.Sprintf("version: 1\nname: any\nsource: {base_url: %q, account: acme, timezone: UTC}\nforms: [form1]\nload: [{path: form1.csv}]\n", server.URL))
	wrong := write(t, dir, "wrong.yaml", "version: 1\nname: "+strings.Repeat("x", 100)+"\n")
	silent := filepath.Join(dir, "silent") // whoever opens it waits for a writer
	if err := unix.Mkfifo(silent, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, args := range [][]string{
		{"run", "FILE"},
		{"plan", "FILE"},
		{"validate", "FILE"},
		{"validate", wrong},
		{"preview", "FILE"},
		{"doctor", "FILE"},
		{"verify", "FILE"},
		{"state", "show", "FILE"},
		{"schema", "infer", "--form", "form1", "SERVICE"},
		{"schema", "definition"},
		{"forms", "SERVICE"},
		{"status", "--form", "form1", "SERVICE"},
		{"count", "--form", "form1", "SERVICE"},
		{"count", "--form", "form1", "--api-key-file", silent, "SERVICE"},
		{"run", silent},
		{"clean", "FILE"},
		{"replay", "FILE"},
		{"export", "--form", "form1", "--limit", "100", "SERVICE"},
		{"demo", "--results", "10", "--dir", "other"},
		{"help", "exit-codes"},
		{"--help"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			p := command(t, dir, testKey, filled(args, file, server.URL)...)
			p.Stdout, p.Stderr = unread(t, true), unread(t, true)
			p.start(t)
			time.Sleep(700 * time.Millisecond) // most have come to their first line by now
			p.stop(t, []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}[i%3])
		})
	}
}
