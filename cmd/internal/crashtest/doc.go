// Package crashtest kills the real formetl, and has it run in bad weather. It holds
// tests only.
//
// The binary is built once, with the tag formetl_faults, and runs as a process
// of its own against a real form service and, besides the disk, a real S3
// server. It is killed with -9 before every named action of a run; the S3 server
// is killed too. Kills at any moment are for the campaign. The network to S3 cuts,
// delays and swallows, disks are full or read-only, and a part of gigabytes is
// written in little memory. After each of these, what readers see is compared with
// what the service held then, and after the next run with what it holds now.
//
// With nothing but Go none of this runs, see package needs. .ci/run has all of it run but
// for what FORMETL_TEST_LARGE=1 asks for: black holes of minutes, a part of 2 GB instead of
// 300 MB, and 200 forms.
package crashtest
