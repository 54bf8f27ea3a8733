package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines"
)

type demoFlags struct {
	results int
	dir     string
}

func (a *app) demoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a sample pipeline against a service of its own",
		Long: `Demo starts the embedded test service on loopback with a key of its own, runs a
sample pipeline against it over real HTTP, writes CSV and Parquet, and exits.
It needs no credentials and no network.`,
		Example: `  formetl demo
  formetl demo --results 200000 --dir /tmp/demo`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), f) },
	}
	cmd.Flags().IntVar(&f.results, "results", 5000, "results that the service holds")
	cmd.Flags().StringVar(&f.dir, "dir", "demo", "folder that the files are written under")
	return cmd
}

func (a *app) demo(ctx context.Context, f demoFlags) error {
	generate := formservice.GenerateOptions{Directory: "feedback", Name: "Customer feedback", Results: f.results, Seed: 1}
	if err := generate.Validate(); err != nil {
		return fmt.Errorf("--results: %w", err)
	}
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return err
	}
	log, err := a.begin(levelWarn)
	if err != nil {
		return err
	}
	service, err := startDemoService(ctx, generate)
	if err != nil {
		return err
	}
	defer service.stop()
	log.tell(levelInfo, fmt.Sprintf("A test service with %s listens on %s.", plural(f.results, "result"), service.url))
	bar, err := a.newProgress(progressAuto)
	if err != nil {
		return err
	}
	started := time.Now()
	report, err := pipelines.Run(ctx, demoDefinition(service, dir), pipelines.Options{
		Tables: tables(), Logger: log.Logger, Progress: bar.update, Client: clientOptions(),
	})
	bar.finish()
	if err != nil {
		return err
	}
	return a.print(demoSummary(report, time.Since(started)))
}

func demoDefinition(s *demoService, dir string) *pipelines.Definition {
	return &pipelines.Definition{
		Name:  "demo",
		Forms: []string{"feedback"}, Labels: true,
		State: filepath.Join(dir, ".formetl"),
		Source: pipelines.Source{
			BaseURL: s.url, Account: formservice.DefaultAccount, Key: s.key, Zone: time.UTC,
			Requests: pipelines.Requests{Concurrency: transport.DefaultConcurrency, Timeout: transport.DefaultTimeout, Retries: transport.DefaultRetries},
		},
		Extract: pipelines.Extract{Settle: pipelines.DefaultSettle, Lookback: pipelines.DefaultLookback, Verify: true},
		Outputs: []pipelines.Output{
			{Path: filepath.Join(dir, "{form}.csv"), Format: "csv", Profile: "strict", Partition: pipelines.PartitionNone},
			{Path: filepath.Join(dir, "lake", "{form}") + "/", Format: "parquet", Partition: pipelines.PartitionMonth},
		},
	}
}

// demoSummary is the last thing that a newcomer reads.
func demoSummary(r *pipelines.Report, took time.Duration) []byte {
	f := r.Forms[0]
	var b bytes.Buffer
	fmt.Fprintf(&b, "\nDone in %s: %s results read once, %s; %d requests.\n\n", took.Round(time.Millisecond), thousands(f.Rows), verifiedSentence(f),
		r.Requests.Results+r.Requests.Count+r.Requests.Retries)
	csv, lake := f.Outputs[0], f.Outputs[1]
	fmt.Fprintf(&b, "  %s  (%s, one row a result)\n", csv.Path, size(csv.Bytes))
	fmt.Fprintf(&b, "  %s  (Parquet, %d parts by month, %s)\n\n", lake.Path, lake.Parts, size(lake.Bytes))
	fmt.Fprintf(&b, `Try next:
  head -n 3 %[1]s
  duckdb -c "SELECT dt, count(*) FROM read_parquet('%[2]s**/*.parquet', hive_partitioning=true, union_by_name=true) GROUP BY dt ORDER BY dt"
  formetl export --help      one form of your own account as a file
  formetl run --help         a pipeline of your own; README.md shows a first definition
`, csv.Path, lake.Path)
	return b.Bytes()
}

// demoService is the embedded test service on a loopback port.
type demoService struct {
	url    string
	key    transport.Secret
	server *http.Server
	done   chan error
}

func startDemoService(ctx context.Context, generate formservice.GenerateOptions) (*demoService, error) {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails, see crypto/rand
	key := hex.EncodeToString(random[:])
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the test service on loopback: %w", err)
	}
	s := &demoService{
		url: "http://" + listener.Addr().String(), key: transport.NewSecret(key), done: make(chan error, 1),
		server: &http.Server{
			Handler:           &formservice.Server{Key: key, Forms: []*formservice.Form{formservice.Generate(generate)}},
			ReadHeaderTimeout: 10 * time.Second,
			ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, levelWarn), // its faults are not this program's
		},
	}
	go func() { s.done <- s.server.Serve(listener) }()
	return s, nil
}

// stop ends the service and waits for it.
func (s *demoService) stop() {
	_ = s.server.Close()
	if err := <-s.done; err != nil && !errors.Is(err, http.ErrServerClosed) {
		return // it was going away anyway
	}
}
