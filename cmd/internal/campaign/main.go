package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load/loadtest/needs"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// campaign is what the flags ask for.
type campaign struct {
	lives    int
	seed     uint64 // of the first life; each next one has the next
	program  string
	server   *needs.S3       // nil without S3
	postgres *needs.Postgres // nil without PostgreSQL
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
	flags.StringVar(&c.program, "formetl", "", "a formetl that was built with the tag formetl_faults")
	if err := flags.Parse(args); err != nil || c.program == "" {
		fmt.Fprintln(stderr, "give -formetl, which go build -tags formetl_faults makes")
		return 64
	}
	c.seed = cmp.Or(c.seed, uint64(time.Now().UnixNano())%1_000_000_000) //nolint:gosec // after 1970
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
	if s3 {
		folder := filepath.Join(dir, "s3")
		if err := os.MkdirAll(filepath.Join(folder, bucketName), 0o750); err != nil {
			return err
		}
		if c.server, err = needs.StartS3(ctx, needs.Versitygw(), folder, nil); err != nil {
			return err
		}
		defer c.server.Stop()
	}
	if postgres {
		needs.FilesInMemory()
		if c.postgres, err = needs.OpenPostgres(); err != nil {
			return err
		}
		defer c.postgres.Stop()
	}
	fmt.Fprintf(c.out, "campaign: %d lives from seed %d on\n", c.lives, c.seed)
	began := time.Now()
	problems := c.each(ctx)
	fmt.Fprintf(c.out, "%d lives in %s\n", c.lives, time.Since(began).Round(time.Second))
	if len(problems) > 0 {
		return fmt.Errorf("%d of %d lives went wrong:\n%s", len(problems), c.lives, strings.Join(problems, "\n"))
	}
	return ctx.Err()
}

// each lives the lives, a few at once.
func (c *campaign) each(ctx context.Context) (problems []string) {
	var mu sync.Mutex
	var all errgroup.Group
	all.SetLimit(runtime.NumCPU())
	for n := range c.lives {
		all.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			seed := c.seed + uint64(n) //nolint:gosec // not negative
			err := c.one(seed)
			if ctx.Err() != nil {
				return nil // it was interrupted, and its S3 server may be gone
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				brief := strings.SplitN(err.Error()+"\n", "\n", 3)[1]
				problems = append(problems, fmt.Sprintf("-seed %d: %s", seed, brief))
				fmt.Fprintf(c.out, "== WRONG, repeat it with -lives 1 -seed %d\n%v\n", seed, err)
			}
			return nil
		})
	}
	_ = all.Wait() // what went wrong is among the problems
	return problems
}

// one lives one life. The error's second line says what was wrong, and the others all that
// explains it.
func (c *campaign) one(seed uint64) error {
	l, err := newLife(c, seed)
	if err != nil {
		return fmt.Errorf("the life cannot begin:\n%w", err)
	}
	err = l.live()
	l.close(err != nil)
	if err != nil {
		err = fmt.Errorf("%w\n--- the life\n%s", err, l.scenario())
	}
	return err
}
