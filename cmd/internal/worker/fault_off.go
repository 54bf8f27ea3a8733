//go:build !formetl_faults

package worker

// faultPoint does nothing without the build tag formetl_faults.
func faultPoint(func(string) (string, bool)) func(string) { return nil }
