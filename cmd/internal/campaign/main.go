package main

import (
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
	"sync"
	"syscall"
	"time"

	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/loadtest/pgserver"
	"github.com/formetl/formetl/load/loadtest/s3server"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// campaign is what the flags ask for.
type campaign struct {
	lives    int
	seed     uint64 // of the first life; each next one has the next
	together int    // so many lives at once
	lawful   bool   // see life
	program  string
	server   *s3server.Server // nil without S3
	postgres *pgserver.Server // nil without PostgreSQL
	out      io.Writer
}

// run does what the command line says and gives the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	c := &campaign{out: stdout}
	flags := flag.NewFlagSet("campaign", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.lives, "lives", 40, "how many lives")
	flags.Uint64Var(&c.seed, "seed", 0, "seed of the first life; 0: by the clock")
	s3 := flags.Bool("s3", false, "let a share of the lives write to a real S3 server (versitygw)")
	postgres := flags.Bool("postgres", false, "let most outputs be tables of a real PostgreSQL server")
	flags.BoolVar(&c.lawful, "lawful", false, "services keep their specification, and results change under most runs: no run may end with 65")
	flags.IntVar(&c.together, "together", runtime.NumCPU(), "so many lives at once")
	flags.StringVar(&c.program, "formetl", "", "a formetl that was built with the tag formetl_faults; default: build it")
	if err := flags.Parse(args); err != nil {
		return 64
	}
	if c.seed == 0 {
		c.seed = uint64(time.Now().UnixNano()) % 1_000_000_000 //nolint:gosec // after 1970
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.do(ctx, *s3, *postgres); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// do lives the lives and tells how they went.
func (c *campaign) do(ctx context.Context, s3, postgres bool) error {
	dir, err := os.MkdirTemp("", "formetl-campaign-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is a temporary folder
	if c.program == "" {
		if c.program, err = build(ctx, dir); err != nil {
			return err
		}
	}
	if s3 {
		if c.server, err = startS3(ctx, filepath.Join(dir, "s3")); err != nil {
			return err
		}
		defer c.server.Stop()
	}
	if postgres {
		needs.FilesInMemory()
		if c.postgres, err = pgserver.Open(); err != nil {
			return err
		}
		defer c.postgres.Stop()
	}
	fmt.Fprintf(c.out, "campaign: %d lives from seed %d on\n", c.lives, c.seed)
	began := time.Now()
	total, problems := c.each(ctx)
	fmt.Fprintf(c.out, "%v%d lives in %s\n", total, c.lives, time.Since(began).Round(time.Second))
	if len(problems) > 0 {
		return fmt.Errorf("%d of %d lives went wrong:\n%s", len(problems), c.lives, strings.Join(problems, "\n"))
	}
	return ctx.Err()
}

// each lives the lives, a few at once.
func (c *campaign) each(ctx context.Context) (total figures, problems []string) {
	total = figures{}
	var mu sync.Mutex
	var all sync.WaitGroup
	places := make(chan struct{}, c.together)
	for n := range c.lives {
		if places <- struct{}{}; ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-places }()
			seed := c.seed + uint64(n) //nolint:gosec // not negative
			f, problem := c.one(seed)
			if ctx.Err() != nil {
				return // it was interrupted, and its S3 server may be gone
			}
			mu.Lock()
			defer mu.Unlock()
			total.add(f)
			if problem != "" {
				problems = append(problems, fmt.Sprintf("-seed %d: %s", seed, strings.SplitN(problem, "\n", 3)[1]))
				fmt.Fprintf(c.out, "== WRONG, repeat it with -lives 1 -seed %d\n%s\n", seed, problem)
			}
		})
	}
	all.Wait()
	return total, problems
}

// one lives one life; problem tells everything about what was wrong, "" for
// nothing.
func (c *campaign) one(seed uint64) (f figures, problem string) {
	var b *bucket
	var err error
	if c.server != nil {
		if b, err = newBucket(c.server); err != nil {
			return f, "\n" + err.Error()
		}
		defer b.http.Close()
	}
	var db *database
	if c.postgres != nil {
		if db, err = newDatabase(c.postgres); err != nil {
			return f, "\n" + err.Error()
		}
		defer func() {
			if problem == "" {
				_ = db.drop() // it goes with the server
			}
		}()
	}
	l, err := newLife(seed, c.program, c.lawful, b, db)
	if err != nil {
		return f, "\n" + err.Error()
	}
	err = l.live()
	l.close(err != nil)
	if err != nil {
		problem = fmt.Sprintf("%v\n--- the life\n%s", err, l.scenario())
	}
	return l.figures, problem
}

// build builds the program as it is shipped, with fault points.
func build(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "formetl")
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "formetl_faults", "-o", program, "github.com/formetl/formetl/cmd/formetl")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("cannot build formetl: %w", err), errors.New(string(out)))
	}
	return program, nil
}
