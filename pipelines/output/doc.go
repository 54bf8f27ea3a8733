// Package output does everything at a destination: it opens a form's outputs,
// stages a snapshot of what was read, and commits it.
//
// An output is a dataset of parts, a single file, or standard output; the child
// of a list is an output like any other. Open takes the lease of each, finishes
// a commit that a dead run recorded, and compares what lies there with the
// manifest. Set.Commit encodes all objects side by side, records the commits of
// all outputs, and publishes them. An output that fails is set aside, and the
// others go on.
//
// The package decides how columns are shown in a format, which parts a run
// replaces and reuses, and what manifests, dead letters and codebooks say. It
// asks the service nothing. The steps of a commit are those of package load.
//
// Begin reading with Open, Set.Commit and dataset.stage.
package output
