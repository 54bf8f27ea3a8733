// Package loadtest holds the conformance suites of package load: every
// encoder and every destination passes the same list of named cases. It is
// imported by tests only.
package loadtest
