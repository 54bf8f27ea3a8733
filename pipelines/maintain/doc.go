// Package maintain looks after what runs leave behind.
//
// State tells of watermarks, of runs under way or ended early, of checkpoints and
// of the request budget; it changes nothing. ResetState sets watermarks back and
// discards checkpoints. Clean removes what dead runs left at outputs and in the
// state folder.
//
// None of them reads results or removes committed data. They work form by form and
// output by output: one that fails does not stop the others.
//
// Begin reading with State.
package maintain
