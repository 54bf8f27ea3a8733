// Command bench measures what formetl costs, as ratios that another machine repeats.
//
// What is measured are processes of their own. The test service runs in this one. It keeps the
// answers that it gave, so that its cost is small and the same for all. In each round every
// case runs once, with each of two programs if one is given to compare with. The tables show
// medians of the rounds, and the CPU time over that of the other program.
//
// The README beside this file says how to repeat its table. Begin reading with run.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// settings are what the flags ask for.
type settings struct {
	results, items, rounds int
	concurrency            int
	only                   string
	program, compare       string
	latency                time.Duration
}

// run does what the command line says.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.results, "results", 200_000, "results of the form")
	flags.IntVar(&s.items, "items", 20, "items of each result")
	flags.IntVar(&s.rounds, "rounds", 3, "how often each case runs")
	flags.IntVar(&s.concurrency, "concurrency", 4, "requests under way at once")
	flags.StringVar(&s.only, "cases", "", "only these cases, separated by commas (default: all)")
	flags.StringVar(&s.program, "formetl", "", "the formetl that is measured (default: build it)")
	flags.StringVar(&s.compare, "compare", "", "another formetl that runs in turns with it")
	flags.DurationVar(&s.latency, "latency", 0, "let the service take so long for each answer, and measure how much of that is hidden")
	if err := flags.Parse(args); err != nil {
		return err
	}
	names, err := s.chosen()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "formetl-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is a temporary folder
	if s.program == "" {
		if s.program, err = build(ctx, dir); err != nil {
			return err
		}
	}
	fmt.Fprintf(stdout, "%d CPUs, %s, load %s\n\n", runtime.NumCPU(), runtime.Version(), load())
	return s.measure(ctx, dir, names, stdout)
}

// build builds formetl as it is released, as the README describes it.
func build(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "formetl")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "arrow_json_stdlib", "-ldflags", "-s -w", "-o", program, "github.com/formetl/formetl/cmd/formetl")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build formetl: %w\n%s", err, out)
	}
	return program, nil
}

// load returns the machine's load in the last minute, or "unknown".
func load() string {
	data, _ := os.ReadFile("/proc/loadavg") // only Linux has it
	minute, _, _ := strings.Cut(string(data), " ")
	return cmp.Or(minute, "unknown")
}
