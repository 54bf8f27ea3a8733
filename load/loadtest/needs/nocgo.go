//go:build !cgo

package needs

// cgo tells whether C can be called, as DuckDB's tests do.
const cgo = false
