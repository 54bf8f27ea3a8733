package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// usage is what a process took.
type usage struct {
	wall     time.Duration
	cpu      time.Duration // user and system time
	resident int64         // most bytes of memory at once
}

// measured runs a program with arguments and further variables of the environment.
func measured(ctx context.Context, environment []string, program string, args ...string) (usage, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), environment...)
	var said bytes.Buffer
	command.Stderr = &said
	began := time.Now()
	if err := command.Start(); err != nil {
		return usage{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	var u usage
	for {
		select {
		case <-time.After(5 * time.Millisecond):
			u.resident = max(u.resident, resident(command.Process.Pid))
		case err := <-ended:
			if err != nil {
				return usage{}, fmt.Errorf("%s %v: %w\n%s", program, args, err, said.Bytes())
			}
			u.wall, u.cpu = time.Since(began), command.ProcessState.UserTime()+command.ProcessState.SystemTime()
			return u, nil
		}
	}
}

// resident returns the most bytes of memory that a process has had so far, as Linux tells it in
// /proc (VmHWM); elsewhere 0. What wait4(2) tells does not do: there a process begins with the
// most memory of the bench that started it.
func resident(pid int) (bytes int64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if _, rest, found := strings.Cut(string(status), "VmHWM:"); found {
		_, _ = fmt.Sscanf(rest, "%d kB", &bytes)
	}
	return bytes << 10
}
