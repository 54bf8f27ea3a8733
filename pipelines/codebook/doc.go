// Package codebook tells what changed on a form, and what is needed to read its
// data.
//
// A [Form] is what a run saw: its columns, the service's headings, and statistics
// of the results. [Form.Changes] compares it with the manifest of the run before
// and lists what was added, removed, relabelled or retyped. [Form.Describe]
// writes the same knowledge into the next manifest, so that each change is reported
// once. A [Book] is made of a committed output by [New], and [Write] puts it beside
// the output: <name>.schema.json for programs, <name>.codebook.csv for people.
//
// The package decides neither columns nor types: schemas and transform do. It reads
// no results, and a codebook that cannot be written never fails a run. Begin
// reading at [New] for codebooks and at [Form.Changes] for changes.
package codebook
