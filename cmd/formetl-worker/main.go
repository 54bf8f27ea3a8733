// Command formetl-worker runs formetl's pipelines on Temporal, on several machines.
package main

import (
	"os"
	_ "time/tzdata" // zones also where the machine has none: scratch containers

	"github.com/formetl/formetl/cmd/internal/worker"
)

func main() {
	os.Exit(worker.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
}
