//go:build !linux

package pgserver

import "syscall"

// attributes are those of any process: nothing lets the server die with the tests here.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// as does nothing: the tests do not run as root here.
func as(*syscall.SysProcAttr, uint32) {}
