// Package checkpoint keeps what a run has read, so that the next run need not
// ask the service for it again.
//
// A checkpoint belongs to one form of one definition. It holds a header, which
// says what was read and how, and pieces. A piece is a span of ids of one
// window: the rows as Arrow IPC streams, their ids, rejected results and
// statistics. The pieces of a window in ascending order of ids are a chain; a
// chain whose last piece ends the window is complete.
//
// A checkpoint lies in a folder of the state folder, or in the control folder
// of an output. Its owner is one run: a file lock or the output's lease says so.
// A piece is written as its rows and then its record, so a process that is
// killed leaves a whole piece or none. Checksums tell what a power cut tore:
// such a piece is read again.
//
// The package does not decide what is read, or whether a piece agrees with the
// service's counts. It is never needed for correctness: deleting a checkpoint
// costs requests and nothing else.
//
// Begin reading with Open, then Checkpoint.Inherit and Writer.
package checkpoint
