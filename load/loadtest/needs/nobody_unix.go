//go:build unix

package needs

import (
	"os"
	"syscall"
)

// nobody runs PostgreSQL where the tests run as root, which it refuses.
const nobody = 65534

// asNobody gives what lets a process be one of nobody, if the tests run as root.
func asNobody() *syscall.SysProcAttr {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}
