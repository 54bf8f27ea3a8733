// Package crashtest kills the real formetl and looks at what is left. It holds
// tests only.
//
// The binary is built once, with the tag formetl_faults, and runs as a process
// of its own against a real form service and, besides the disk, a real S3
// server. It is killed with -9 before every named action of a run; the S3 server
// is killed too. Kills at any moment are for the campaign. After each crash,
// what readers see is compared with what the service held then, and after the
// next run with what it holds now.
//
// By default a sample of this runs, on disk only; package needs tells how to ask
// for all of it.
package crashtest
