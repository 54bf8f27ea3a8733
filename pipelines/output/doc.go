// Package output does everything at a destination: it opens a form's outputs,
// stages a snapshot of what was read, and commits it.
//
// An output is a dataset of parts, a single file, or standard output. The child
// output of a list is an output like any other. Open takes the lease of each
// output, finishes a commit that a dead run recorded, and compares what lies
// there with the manifest. Set.Commit encodes the objects of all outputs side by
// side, records their commits, and publishes them. An output that fails is set
// aside, and the others go on.
//
// The package decides how a format shows columns and which parts a run replaces
// and reuses. It also writes manifests, dead letters and codebooks. It sends no
// requests to the service. Package load has the steps of a commit.
//
// Begin reading with Set.Open, Set.Commit and dataset.stage; encoding.letters (letters.go)
// makes the dead letters of a part.
package output
