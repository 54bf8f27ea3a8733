//go:build !formetl_faults

package cli

// faultPoint is nothing in a program that is built to be used.
func faultPoint(func(string) (string, bool)) func(string) { return nil }
