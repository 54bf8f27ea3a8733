package loadtest

// Overwriting is an allocator of Arrow memory that overwrites memory once it is
// freed. The allocator of a run gives freed memory to other batches. So a value
// that is used after its batch was released is wrong in the same way, but always.
// The zero value is ready, and may be used by several goroutines at once.
type Overwriting struct{}

// Allocate returns size bytes, all zero.
func (Overwriting) Allocate(size int) []byte { return make([]byte, size) }

// Reallocate returns the bytes of b in a slice of the given size, and frees b.
func (o Overwriting) Reallocate(size int, b []byte) []byte {
	moved := o.Allocate(size)
	copy(moved, b)
	o.Free(b)
	return moved
}

// Free overwrites b.
func (Overwriting) Free(b []byte) {
	for i := range b {
		b[i] = '#'
	}
}
