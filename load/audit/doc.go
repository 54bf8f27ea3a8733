// Package audit checks what lies at a destination against its manifest: every part by its
// length and SHA-256, its rows, its columns and its ids, and the dataset as a whole. It
// changes nothing, and takes no lease.
//
// Begin reading with Check.
package audit
