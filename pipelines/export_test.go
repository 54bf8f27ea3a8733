package pipelines

import "github.com/apache/arrow-go/v18/arrow/memory"

// WithMemory returns the options of a run whose batches are allocated by mem.
func (o Options) WithMemory(mem memory.Allocator) Options {
	o.batches = mem
	return o
}
