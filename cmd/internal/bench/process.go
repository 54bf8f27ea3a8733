package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
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
	if err := command.Run(); err != nil {
		return usage{}, fmt.Errorf("%s %v: %w\n%s", program, args, err, said.Bytes())
	}
	u := usage{wall: time.Since(began), cpu: command.ProcessState.UserTime() + command.ProcessState.SystemTime()}
	if r, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.resident = r.Maxrss
		if runtime.GOOS != "darwin" {
			u.resident <<= 10 // Linux counts in KiB
		}
	}
	return u, nil
}
