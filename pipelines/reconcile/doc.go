// Package reconcile makes what was read agree with the service's counts, with
// itself and with the parts that earlier runs left.
//
// Results come, go and move while they are read. A Reconciler looks for results
// that are in two windows. It looks for windows that do not agree with the
// service's count (Get Results Count). It looks for older parts that are stale:
// the run read a result of theirs in another window, or the service named it as
// changed. And it looks for expected results that no window holds. It has all of
// these read again until everything agrees, or fails with an error of the data.
// Its result is a Snapshot: rows, schema and sums that no longer change.
//
// A run that reads a range compares that range with the count. A run that reads
// only what changed compares the whole dataset, in one count.
//
// The package itself reads no windows and writes nothing. Package reading reads for it,
// and package output stages the snapshot.
//
// Begin reading with Reconciler.Reconcile and Snapshot. The other files are its steps:
// what changed since earlier runs (changes), parts of earlier runs that are read again
// (older), results in two windows (duplicates), the comparison with counts (proof),
// results that no window holds (missing), and those without a date or with one that is
// still to come (outside). What results that are still to come tell of clocks and zones stands in
// clock.
package reconcile
