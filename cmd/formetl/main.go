// Command formetl takes the results of online forms to CSV, NDJSON, JSON,
// Arrow and Parquet.
package main

import (
	"os"
	_ "time/tzdata" // zones also where the machine has none: scratch containers

	"github.com/formetl/formetl/cmd/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
}
