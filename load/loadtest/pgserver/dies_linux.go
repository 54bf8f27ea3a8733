package pgserver

import "syscall"

// attributes let the server die with the tests, whatever ends them.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} }

// as makes a process one of another user.
func as(a *syscall.SysProcAttr, user uint32) {
	a.Credential = &syscall.Credential{Uid: user, Gid: user}
}
