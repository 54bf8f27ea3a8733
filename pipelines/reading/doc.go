// Package reading reads the windows of one form into a checkpoint.
//
// A Form is what is read and how the service is asked about it. NewPlan divides
// a span of time into windows by the service's counts. A Reader then reads
// windows side by side. It pages each one by ascending ids, flattens the pages
// into rows, and writes them to the checkpoint piece by piece. What an earlier
// run left there of a window is taken over, and only the gaps are asked for.
//
// A Window knows its counts and its reading: the pieces, their ids, and sums
// over them. A window may be read again; its pieces are replaced then.
//
// The package does not judge whether what was read is right. Package reconcile
// compares it with the counts, and asks for windows to be read again.
//
// Begin reading with Form, NewPlan and Reader.Read.
package reading
