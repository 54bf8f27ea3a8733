package s3

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// process names a process of one machine, so that a later one on the same
// machine can tell whether it is gone. A container has a machine name and
// process ids of its own: Space tells it from its neighbours.
type process struct {
	Host  string `json:"host,omitempty"`
	Space string `json:"space,omitempty"` // boot and process id space, "" where the system does not tell
	PID   int    `json:"pid,omitempty"`
	Start string `json:"start,omitempty"` // when it started, as the system counts, "" where that is not told
}

func thisProcess() process {
	pid := os.Getpid()
	return process{Host: hostname(), Space: processSpace(), PID: pid, Start: processStart(pid)}
}

// gone tells that the process was on this host and has ended. Where that
// cannot be known for sure, it is taken for alive: its lease expires anyway.
func (p process) gone() bool {
	if p.PID <= 0 || p.Host == "" || p.Host != hostname() || p.Space != processSpace() {
		return false
	}
	found, err := os.FindProcess(p.PID)
	if err != nil {
		return true // as on Windows
	}
	err = found.Signal(syscall.Signal(0))
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return true
	}
	start := processStart(p.PID)
	return p.Start != "" && start != "" && p.Start != start // the id is another's now
}

// processSpace identifies the running system and its process ids (Linux).
func processSpace() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + space
}

// processStart is the 22nd field of /proc/PID/stat (proc(5)), counted after
// the program's name, which may hold anything.
func processStart(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}
