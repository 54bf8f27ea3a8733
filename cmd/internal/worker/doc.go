// Package worker runs pipelines on Temporal: the workflows, the activities that do their
// work, and the commands of formetl-worker.
//
// # What is a workflow and what is an activity
//
// Pipeline is the workflow of a definition. It lists the forms and starts a Form workflow
// for each, a few at a time. The id of a Form workflow is made of pipeline and form, so
// that one is under way at a time. Its activities are the processes of package pipelines:
//
//	Plan       opens the outputs, decides what is read, and plans the windows
//	Read       reads a group of windows; several at once, on all workers
//	Reconcile  makes what was read agree; it may ask for more to be read
//	Stage      stages a share of the parts; several at once, on all workers
//	Commit     commits what is staged
//
// A form whose windows make one group is done by Plan alone, and one of few parts ends with
// Reconcile. A step that fails for a
// reason that may pass is tried again, on any worker. What was read lies in the
// checkpoint at the destination, so that no try reads it again. If a run of formetl came
// between, the workflow begins again with Plan.
//
// # What passes through Temporal
//
// Payloads hold names, numbers and ids: the path of the definition, the form, the run,
// the number of a group, counts of rows and requests. They never hold rows or keys. Each
// worker reads the definition and resolves its references itself.
//
// # What all workers share
//
// The lease of the destination belongs to the Form workflow, and each activity renews it
// while it works. The requests to an account are bounded over all workers by the workflow
// Budget, which lends slots and bookings to workers for seconds (see ledger). Measured
// against it, TaskQueueActivitiesPerSecond bounds how many activities begin, and so can
// only bound requests if each is an activity: thousands of events for a single form.
//
// Begin reading with Form, then Activities.
package worker
