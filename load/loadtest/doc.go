// Package loadtest holds the conformance suites of package load: Encoder and Destination
// run the same named cases for every format and every destination.
//
// A case knows only the interfaces of load. What a format cannot hold is told by
// Limits, and optional abilities (leases, sweeping) are skipped where a
// destination lacks them. Only tests import the package. Begin reading with
// Destination and Encoder, which list the cases.
package loadtest
