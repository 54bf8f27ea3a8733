// Package reading reads the windows of one form into a checkpoint.
//
// An Interval says which span of time a run reads and where the next one begins.
// A Form says what is read and how the service is asked about it. NewPlan
// divides a span of time into windows by the service's counts. A Reader then
// reads several windows at once. It pages each one by ascending ids, flattens
// the pages into rows, and writes them to the checkpoint piece by piece. It
// takes over what an earlier run left there, and requests only the gaps. A
// goroutine without work takes the upper half of what another one still has to read
// of a window. So all allowed requests are under way, even for a single window.
//
// A Window knows its counts and its reading: the pieces, their ids, and sums
// over them. If a window is read again, its new pieces replace the old ones.
//
// The package does not judge whether what was read is right. Package reconcile
// compares it with the counts, and asks for windows to be read again.
//
// Without a schema, sample.go reads the first pages and has columns inferred from them.
//
// Begin reading with NewInterval, Form, NewPlan and Reader.Read.
package reading
