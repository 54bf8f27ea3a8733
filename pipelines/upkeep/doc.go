// Package upkeep is what is done with a definition besides running it.
//
// Examine (doctor) checks what a run needs before it runs: the key, the forms, the zone,
// the clocks, the budget, the destinations and the disk. Verify and VerifyPath compare what
// runs wrote with its manifests, and with the service's counts. State tells of watermarks,
// of runs under way or ended early, of checkpoints and of the budget; ResetState sets
// watermarks back. Clean removes what dead runs left. InferSchema proposes a schema file by
// a sample of a form's results, and DiffLive compares columns with the form as it is now.
//
// None of them runs a pipeline, reads all results, or removes committed data. What they make
// at destinations to test them they remove again. All but ResetState and Clean change
// nothing and take no lease. They work form by form and output by output: one that fails
// does not stop the others.
//
// Each command begins in the file of its name: begin reading with doctor.go, verify.go,
// state.go, clean.go, infer.go or diff.go.
package upkeep
