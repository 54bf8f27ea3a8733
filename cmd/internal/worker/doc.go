// Package worker runs pipelines on Temporal: a workflow for each definition, the activities that
// do its work, and the commands of formetl-worker.
//
// Pipeline lists the forms of a definition and has an activity run each, on any worker. An
// activity is what `formetl run --form` is: one process does a form's run from its beginning
// to its commit. It tells Temporal how far it is. If its worker dies, another one does the
// activity again, and resumes from what lies in the state. The state also holds the budget of
// the account.
//
// Payloads hold names, numbers and ids: the path of the definition, the form, counts of rows
// and requests. They never hold rows or keys. Each worker reads the definition and resolves
// its references itself.
//
// It reads no form itself, and keeps nothing: package pipelines runs, and the state remembers.
// Whether an activity is tried again is said by the exit code of its error alone.
//
// Begin reading with Pipeline, then Activities, then Main.
package worker
