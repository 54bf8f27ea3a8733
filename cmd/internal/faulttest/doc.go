// Package faulttest holds tests of the real formetl program in bad weather: a
// network that cuts, delays and swallows, S3 servers that refuse, disks that
// are full, signals in the middle of an upload, and a part of gigabytes in
// little memory. There is nothing in it to import.
//
// Every run is a process of its own against real servers: the test service
// over HTTP, versitygw, and toxiproxy in between. After every fault the same
// definition is run again without it, and what then lies at the destination is
// compared with the truth: what an undisturbed run writes, row by row, and the
// ids that the service holds.
//
// What needs a server that was not built yet is left out, and named, unless
// every test is asked for. FORMETL_TEST_LARGE=1 streams a part of 2 GB
// instead of 300 MB.
package faulttest
