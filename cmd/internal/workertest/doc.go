// Package workertest tests formetl-worker as a real program: with a Temporal server, an S3
// server and the test service, and with workers that are killed and paused.
//
// Begin reading with world_test.go.
package workertest
