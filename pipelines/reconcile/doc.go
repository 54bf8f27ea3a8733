// Package reconcile makes what was read agree with the service's counts, with
// itself and with the parts that earlier runs left.
//
// Results come, go and move while they are read. A Reconciler looks for results
// that are in two windows, and for windows that do not agree with Get Results
// Count. It also looks for parts of datasets that hold a result which the run
// found elsewhere. All these are stale: it has them read again until all agree,
// or fails with an error of the data. What it gives then is a Snapshot: rows,
// schema and sums that do not change any more.
//
// The package reads nothing itself and writes nothing: package reading reads for
// it, and package output stages the snapshot.
//
// Begin reading with Reconciler.Reconcile and Snapshot.
package reconcile
