// Package checkpoint keeps what a run has read, so that the next run need not
// ask the service for it again.
//
// A checkpoint belongs to one form of one definition. It holds pieces, and a
// header that says what was read and how. A piece covers a span of ids of one
// window. It holds the rows as Arrow IPC streams, their ids, rejected results
// and statistics. The pieces of a window in ascending order of ids are a chain.
// A chain is complete if its last piece reaches the window's end.
//
// Checkpoints lie in the state, which is a folder or a prefix of a bucket. Each has a lease,
// so that only one run owns it, also among several hosts. A run writes the rows of a piece and then
// its record, so a killed process leaves a whole piece or none. Checksums show which pieces a
// power cut damaged, and a run reads those again.
//
// The package does not decide what is read, or whether a piece agrees with the
// service's counts. Results are correct without a checkpoint: deleting it only
// costs requests.
//
// Begin reading with Open, then Checkpoint.Found and Writer.
package checkpoint
