// Command campaign lets the real formetl live through random lives, and judges
// everything that it wrote. It is a tool of the tests; nobody is shipped it.
//
//	go run ./cmd/internal/campaign -lives 40 -seed 7    # the lives of the seeds 7 to 46
//	go run ./cmd/internal/campaign -lives 1 -seed 23    # one life again, to look at
//	go run ./cmd/internal/campaign -lives 500 -s3       # a share of them on a real S3 server
//	go run ./cmd/internal/campaign -lives 100 -postgres # most outputs are tables of a real PostgreSQL
//	go run ./cmd/internal/campaign -lives 300 -lawful   # nothing but moves, edits and deletes under a run
//
// A life is a random form, a random definition and a service with faults and
// manners of its own. In it the binary, which is built with the tag
// formetl_faults, runs three to eight times as a process (run, run --full, run
// --from --to, export, clean, state reset, replay). Meanwhile results are
// submitted, edited, moved, finished and deleted, answers are cut or busy or
// empty, and processes are killed at fault points, requests and moments or told
// to stop. Between runs somebody removes parts and manifests, or leaves files.
//
// Half of the lives speak the XML generation of the service, half the JSON one. The
// service stamps every change by a clock of its own, which may be off and may
// jump. In some lives it does not sort by these stamps, or lacks them, and in some it
// forgets to sort now and then. In a third of the lives it tells what changed, and the
// definition is one that asks.
//
// A quarter of the lives go hour by hour while the clocks of the account's zone are put
// forward or back. The machine's clock is wrong now and then, a day has few requests, and
// hundreds of results come or change between two runs. Some definitions ask by the one
// generation, and in the next run by the other.
//
// After every step each output is read back and compared with the history of
// every result (package model). A run that ends with 0 must have written what
// was there; any other end must be one that the circumstances explain, with
// outputs as they were before or whole. No watermark lies behind time that nobody read or
// passes a clock, none falls, a lookback is as long as it should be by the wall clock, no
// more requests are sent than a day has, and nothing lies beside the parts that belongs to none. A service that breaks its specification ends
// runs with 65, or its manner never mattered and the outputs are right. Where the service told an incremental run
// what had changed, its datasets hold the present of results of any age. Damage must be healed by the cure that
// formetl's contract names. In the end an undisturbed run, run --full and clean
// must leave exactly what the service holds, and no file may hold the API key.
//
// What is wrong is printed with the seed, the definition, the service, the
// steps and the log's end, and the folder is kept. A seed repeats a life as far
// as processes allow: requests that are under way side by side may come in
// another order, and moments pass differently.
//
// With -lawful, services keep their specification
// and nobody disturbs a run but those who change results: no run may end with 65.
// The last lines count what happened, the exit codes of lawful services apart from those of
// services that break the specification.
//
// To extend it: what results do belongs in people.go, what a definition may say
// in definition.go, what a service may do in service.go, and what may happen to
// a process or an output in step.go and damage.go. What formetl promises stands
// in package model and nowhere else.
package main
