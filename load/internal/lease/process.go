package lease

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Process identifies a process of one machine, so that a later process on the machine can tell
// whether the first one has ended. Containers have host names and process ids of their own, so
// Space tells them apart.
type Process struct {
	Host  string `json:"host,omitempty"`
	Space string `json:"space,omitempty"` // boot id and process id namespace, "" if unknown
	PID   int    `json:"pid,omitempty"`
	Start string `json:"start,omitempty"` // when the process started, in the system's units
}

// ThisProcess returns the identity of this process.
func ThisProcess() Process {
	pid := os.Getpid()
	host, _ := os.Hostname() // the host is "" if unknown
	return Process{Host: host, Space: processSpace(), PID: pid, Start: processStart(pid)}
}

// Gone tells whether the process ran on this host and has ended. If that is
// uncertain, it returns false, and the lease expires by itself.
func (p Process) Gone() bool {
	host, _ := os.Hostname()
	if p.PID <= 0 || p.Host == "" || p.Host != host || p.Space == "" || p.Space != processSpace() {
		return false
	}
	found, err := os.FindProcess(p.PID)
	if err != nil {
		return true // on Windows: no process has the id
	}
	err = found.Signal(syscall.Signal(0))
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return true
	}
	start := processStart(p.PID)
	return p.Start != "" && start != "" && p.Start != start // another process has the PID now
}

// processSpace identifies the running system and its process id namespace. It
// is "" on systems other than Linux.
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

// processStart returns the start time of a process, "" if unknown. It is the
// 22nd field of /proc/PID/stat (see proc(5)). Fields are counted from behind
// the program's name, which may hold blanks.
func processStart(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return ""
	}
	return string(fields[19])
}
