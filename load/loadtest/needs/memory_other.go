//go:build !linux

package needs

// FilesInMemory does nothing on this system.
func FilesInMemory() {}
