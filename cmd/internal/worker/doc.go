// Package worker runs pipelines on Temporal: a workflow for each definition, the activities that
// do its work, and the commands of formetl-worker.
//
// Pipeline, the workflow, lists the forms of a definition and has an activity run each form, on
// any worker. An activity does what `formetl run --form` does: one process does a form's run from
// its beginning to its commit, and tells Temporal its progress. If the worker dies, another worker
// does the activity again, and resumes from what lies in the state. The state also holds the
// request budget of the account.
//
// Payloads hold names, numbers and ids: the path of the definition, the form, counts of rows
// and requests. They never hold rows or keys. Each worker reads the definition and resolves
// its references itself.
//
// The package reads no form itself, and keeps nothing: package pipelines runs, and the state
// remembers. Whether an activity is tried again depends only on the exit code of its error.
//
// Begin reading with Pipeline, then Activities, then Main.
package worker
