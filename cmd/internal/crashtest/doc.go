// Package crashtest kills the real formetl. It holds tests only.
//
// The binary is built once, with the tag formetl_faults, and runs as a process
// of its own against a real form service and, besides the disk, a real S3
// server. It is killed with -9 before every named action of a run. Kills at any
// moment are for the campaign. What readers see then is compared with what the
// service held, and after the next run with what it holds now. Several processes
// share the forms of an account while one is killed, one is paused and the store of
// their state goes away; and a part of gigabytes is written in little memory.
//
// With nothing but Go none of this runs, see package needs. .ci/run has all of it run but
// for what FORMETL_TEST_LARGE=1 asks for: a part of 2 GB instead of 300 MB,
// and 200 forms.
package crashtest
