// Package reconcile makes what was read agree with the service's counts, with
// itself and with the parts that earlier runs left.
//
// Results come, go and move while they are read. A Reconciler looks for results
// that are in two windows. It looks for windows that do not agree with the
// service's count (Get Results Count). And it looks for older parts with a
// result which the run read in another window. It has all of these read again
// until everything agrees, or fails with an error of the data. Its result is a
// Snapshot: rows, schema and sums that no longer change.
//
// The package itself neither reads nor writes. Package reading reads for it,
// and package output stages the snapshot.
//
// Begin reading with Reconciler.Reconcile and Snapshot.
package reconcile
