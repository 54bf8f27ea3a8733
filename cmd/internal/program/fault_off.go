//go:build !formetl_faults

package program

// FaultPoint does nothing without the build tag formetl_faults.
func FaultPoint(func(string) (string, bool)) func(string) { return nil }
