// Command campaign lets the real formetl live through random lives, and judges
// everything that it wrote. It is a tool of the tests; nobody is shipped it.
//
//	go build -tags formetl_faults -o /tmp/formetl ./cmd/formetl
//	go run ./cmd/internal/campaign -formetl /tmp/formetl -lives 40 -seed 7    # the lives of the seeds 7 to 46
//	go run ./cmd/internal/campaign -formetl /tmp/formetl -lives 1 -seed 23    # one life again, to look at
//	go run ./cmd/internal/campaign -formetl /tmp/formetl -lives 500 -s3       # a share of them on a real S3 server
//	go run ./cmd/internal/campaign -formetl /tmp/formetl -lives 100 -postgres # most outputs are tables of a real PostgreSQL
//
// Outputs are CSV, NDJSON and Parquet files and tables. How other formats and compressions
// write values, and in which folder a part lies, show load/loadtest and the tests of
// pipelines/output. What formetl export makes of its flags, show the tests of cmd/internal/cli:
// it runs by a definition like any other.
//
// A life is a random form, a random definition and a service with faults and
// manners of its own. In it the binary, which is built with the tag
// formetl_faults, runs several times as a process (run, run --full, run
// --from --to, clean, state reset). Meanwhile results are
// submitted, edited, moved, finished and deleted, answers are cut or busy or
// empty, and processes are killed at fault points, requests and moments or told
// to stop.
//
// Half of the lives speak the XML generation of the service, half the JSON one. The
// service stamps every change by a clock of its own, which may be off and may
// jump. In some lives it does not sort by these stamps. In a third of the lives it tells
// what changed, and the definition is one that asks.
//
// After every step each output is read back and compared with the history of
// every result. A run that ends with 0 must have written what was there; any other end must
// be one that the circumstances explain, with outputs as they were before or whole. A
// watermark goes on, and passes neither a clock nor time that nobody read. A service that
// breaks its specification ends runs with 65, or its manner never mattered and the outputs
// are right. In the end an undisturbed run, run --full and clean must leave exactly
// what the service holds, and no file may hold the API key.
//
// What is wrong is printed with the seed, the definition, the service, the
// steps and the log's end, and the folder is kept. A seed repeats a life as far
// as processes allow: requests that are under way side by side may come in
// another order, and moments pass differently.
//
// Some definitions store uploaded files. In the end each file is as the service gives it, and
// where the definition reads all results, no file is missing or too many.
//
// To extend it: what results do belongs in people.go, what a definition may say
// in definition.go, what a service may do in newService, and what may happen to
// a process in step.go. What formetl promises stands in judge.go.
package main
