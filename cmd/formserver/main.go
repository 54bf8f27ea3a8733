// Command formserver serves a generated account of the Form Results Service on loopback, with
// faults on demand: package formservice behind a listener. The flags say how many forms and
// results there are, which generation of the service answers, and what goes wrong. Nothing is
// stored: equal flags give equal results. What a fault does is said by package formservice.
//
// Begin reading at run.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv)
	stop()
	os.Exit(code)
}
