// Package load puts record batches into files: encoders turn batches into
// bytes of one format, destinations keep objects, and a commit makes a run
// visible whole or not at all.
//
// Formats and destinations are sub-packages that import this one; they are
// put into tables at the top of the program and nowhere else.
package load
