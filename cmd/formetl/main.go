// Command formetl takes the results of online forms to CSV, NDJSON, JSON,
// Arrow, Parquet and Excel files, and to tables of PostgreSQL.
package main

import (
	"os"
	_ "time/tzdata" // zones also where the machine has none: scratch containers

	"github.com/formetl/formetl/cmd/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
}
