//go:build !formetl_faults

package console

import "github.com/formetl/formetl/pipelines"

// FaultPoint does nothing without the build tag formetl_faults.
func FaultPoint(func(string) (string, bool)) func(string) { return nil }

// TestHooks does nothing without the build tag formetl_faults.
func TestHooks(func(string) (string, bool), *pipelines.Options) error { return nil }
