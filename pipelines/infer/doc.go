// Package infer proposes, compares and prints the columns of forms.
//
// Schema makes a schema file for people to edit from a form's headings and a
// sample of its results. The sample is spread over the range and costs a handful
// of requests. Columns makes the columns that a run without a schema would
// write. KnownColumns gives those that a schema or earlier runs have settled, and
// asks the service for nothing. DiffLive compares columns with the form as it is
// now.
//
// The package writes no file and takes no lease.
//
// Begin reading with Schema, then the sampler.
package infer
