package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// Exit codes (sysexits).
const (
	exitDone   = 0
	exitUsage  = 64
	exitCreate = 73
	exitFailed = 74
)

// keyVariable names the environment variable that holds the key to ask for.
const keyVariable = "FORMSERVER_API_KEY"

type settings struct {
	addr, account, keyFile string
	results, items         int
	seed                   uint64
	latency                time.Duration
	faults, from, to, zone string
	forms                  []string
	files, odd             bool
	filesMax               uint
	api                    string
}

func (s *settings) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("formserver", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&s.addr, "addr", "127.0.0.1:8420", "address to listen on; port 0 for any free port")
	fs.StringVar(&s.account, "account", formservice.DefaultAccount, "name of the account")
	fs.StringVar(&s.keyFile, "api-key-file", "", "file with the API key that clients must send")
	fs.Func("form", "name of a form; repeatable (default form1)", func(directory string) error {
		if directory == "" {
			return errors.New("the name of the form is empty")
		}
		s.forms = append(s.forms, directory)
		return nil
	})
	fs.IntVar(&s.results, "results", 10_000, "number of results in each form, at most 10,000,000")
	fs.IntVar(&s.items, "items", 14, "number of items in each form")
	fs.Uint64Var(&s.seed, "seed", 1, "seed of the results and of the faults; equal seeds give equal answers")
	fs.StringVar(&s.from, "from", "2025-01-01", "first day of the results, or a date-time")
	fs.StringVar(&s.to, "to", "2026-01-01", "end of the results (exclusive), or now")
	fs.StringVar(&s.zone, "zone", "UTC", "time zone of the account")
	fs.StringVar(&s.api, "api", formservice.V1, "API of the service: v1 (XML), v2 (JSON, with the key as bearer token) or both")
	fs.DurationVar(&s.latency, "latency", 0, "pause before every answer")
	fs.StringVar(&s.faults, "faults", "", "what should go wrong, of the list below (default: nothing)")
	fs.BoolVar(&s.odd, "odd", false, "some answers hold what often breaks programs: quotes, formulas, separators, paths, huge numbers")
	fs.BoolVar(&s.files, "files", false, "serve uploaded files below /ACCOUNT/files/; the results link to them")
	fs.UintVar(&s.filesMax, "files-max", 64<<10, "size in bytes of the largest file; only a few are large")
	return fs
}

func usage(fs *flag.FlagSet) {
	w := fs.Output()
	fmt.Fprint(w, `formserver is a test server: a Form Results Service with generated results.

Usage:
  formserver [flags]

Examples:
  formserver
  formserver --addr 127.0.0.1:0 --results 200000 --form feedback --form orders
  FORMSERVER_API_KEY=secret formserver --from 2025-06-01 --to now --zone Europe/Zurich
  formserver --latency 20ms --faults busy=0.2,busy-status=429,retry-after=1,cut=0.05
  formserver --faults old-root,latin1,strict-limit,insert-every=10
  formserver --faults edit-every=10,lack-update=100
  formserver --api both --zone America/Chicago
  formserver --api v2 --faults v2-fractions=random,v2-pagination=missing,per-minute=50
  formserver --files --files-max 50000000 --faults file-missing=0.02,file-cut=0.1

The API key comes from --api-key-file or from FORMSERVER_API_KEY. Without either,
formserver makes up a key and prints it.

Flags:
`)
	fs.PrintDefaults()
	fmt.Fprint(w, "\nFaults, for -faults name=value,…; a flag takes no value:\n", formservice.FaultsHelp())
}

// run serves until ctx ends and returns the exit code. The address is printed
// on stdout when the server is ready, everything else on stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	var s settings
	fs := s.flags()
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stderr)
		usage(fs)
		return exitDone
	} else if err != nil {
		fmt.Fprintf(stderr, "formserver: %v; see formserver --help\n", err)
		return exitUsage
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "formserver: unexpected argument %q; see formserver --help\n", fs.Arg(0))
		return exitUsage
	}
	server, err := s.server(time.Now())
	if err != nil {
		fmt.Fprintf(stderr, "formserver: %v; see formserver --help\n", err)
		return exitUsage
	}
	if server.Key, err = s.key(stderr, env); err != nil {
		fmt.Fprintf(stderr, "formserver: %v\n", err)
		return exitCreate
	}
	if err := serve(ctx, s.addr, server, stdout); err != nil {
		fmt.Fprintf(stderr, "formserver: %v\n", err)
		return exitFailed
	}
	fmt.Fprintf(stderr, "formserver: stopped; requests: %v\n", server.Counts())
	return exitDone
}

// serve listens until ctx ends; then it lets requests end for a second.
func serve(ctx context.Context, addr string, handler http.Handler, stdout io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w; give another address with --addr", addr, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	fmt.Fprintf(stdout, "listening on http://%s\n", listener.Addr())
	select {
	case err := <-done:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		_ = server.Close() // requests that would not end are cut off
	}
	return nil
}

func (s *settings) server(now time.Time) (*formservice.Server, error) {
	faults := formservice.Faults("").With("latency", s.latency).With("seed", s.seed) + formservice.Faults(","+s.faults)
	if err := formservice.Faults(s.faults).Validate(); err != nil {
		return nil, err
	}
	if s.latency < 0 {
		return nil, fmt.Errorf("--latency %s: give 0 or more", s.latency)
	}
	if !slices.Contains([]string{formservice.V1, formservice.V2, formservice.Both}, s.api) {
		return nil, fmt.Errorf("--api %q: give v1, v2 or both", s.api)
	}
	zone, err := time.LoadLocation(s.zone)
	if err != nil {
		return nil, fmt.Errorf("--zone %q: %w; give a time zone such as America/Chicago", s.zone, err)
	}
	from, wrongFrom := wallClock("--from", s.from, now.In(zone))
	to, wrongTo := wallClock("--to", s.to, now.In(zone))
	if err := cmp.Or(wrongFrom, wrongTo); err != nil {
		return nil, err
	}
	server := &formservice.Server{Account: s.account, Faults: faults, Forms: []*formservice.Form{}, API: s.api, Zone: zone}
	server.Files, server.FilesMax = s.files, int64(s.filesMax)
	if len(s.forms) == 0 {
		s.forms = []string{"form1"}
	}
	for i, directory := range s.forms {
		o := formservice.GenerateOptions{
			Directory: directory, Seed: s.seed + uint64(i), Results: s.results, Items: s.items, From: from, To: to,
			NoHostile: !s.odd, Control: faults.Value("control") != "",
		}
		if slices.Contains(s.forms[:i], directory) {
			return nil, fmt.Errorf("--form %s is given twice: give each form once", directory)
		}
		if err := o.Validate(); err != nil {
			return nil, err
		}
		form := formservice.Generate(o)
		form.Clock = func() time.Time { return time.Now().In(zone) }
		server.Forms = append(server.Forms, form)
	}
	return server, nil
}

// wallClock reads a day, a date-time or "now" as wall-clock time.
func wallClock(name, value string, now time.Time) (time.Time, error) {
	if value == "now" {
		value = now.Format(formservice.WallTime)
	}
	for _, layout := range []string{time.DateOnly, formservice.WallTime, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, value); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %q: give a date such as 2025-01-31 or 2025-01-31T12:00:00, or now", name, value)
}

func (s *settings) key(stderr io.Writer, env func(string) (string, bool)) (string, error) {
	if s.keyFile != "" {
		content, err := os.ReadFile(s.keyFile)
		if err != nil {
			return "", fmt.Errorf("cannot read the API key: %w", err)
		}
		if key := strings.TrimSpace(string(content)); key != "" {
			return key, nil
		}
		return "", fmt.Errorf("cannot read the API key: %s is empty; write a key of your choice into it", s.keyFile)
	}
	value, _ := env(keyVariable)
	if key := strings.TrimSpace(value); key != "" {
		return key, nil
	}
	key := rand.Text()
	fmt.Fprintf(stderr, "formserver: the API key of this run is %s\n", key)
	return key, nil
}
