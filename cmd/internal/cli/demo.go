package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

func demoCommand(p *process) *cobra.Command {
	var results int
	var dir string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a sample pipeline against a service of its own",
		Long: `Demo starts the embedded test service on loopback with a key of its own, runs a
sample pipeline against it over real HTTP, writes CSV and Parquet, and exits.
It needs no credentials and no network.`,
		Example: `  formetl demo
  formetl demo --results 200000 --dir /tmp/demo`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo(cmd.Context(), p, results, dir) },
	}
	cmd.Flags().IntVar(&results, "results", 5000, "results that the service holds")
	cmd.Flags().StringVar(&dir, "dir", "demo", "folder that the files are written under")
	return cmd
}

func demo(ctx context.Context, p *process, results int, dir string) error {
	generate := formservice.GenerateOptions{Directory: "feedback", Name: "Customer feedback", Results: results, Seed: 1}
	if err := generate.Validate(); err != nil {
		return fmt.Errorf("--results: %w", err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	o, err := p.start(slog.LevelWarn, new(flags.Range).Options)
	if err != nil {
		return err
	}
	source, stop, err := startDemoService(ctx, generate)
	if err != nil {
		return err
	}
	defer stop()
	p.log.Tell(slog.LevelInfo, fmt.Sprintf("A test service with %s listens on %s.", show.Plural(results, "result"), source.BaseURL))
	bar, _ := p.log.NewProgress(telemetry.ProgressAuto) // fails for an unknown mode only
	started := time.Now()
	report, err := pipelines.Run(ctx, demoDefinition(source, dir), pipelines.Options{Options: o, Progress: bar.Update})
	bar.Finish()
	if err != nil {
		return err
	}
	return show.Print(p.stdout, demoSummary(report, time.Since(started)))
}

func demoDefinition(source definition.Source, dir string) *definition.Definition {
	return &definition.Definition{
		Name:  "demo",
		Forms: []string{"feedback"}, Labels: true,
		State:  filepath.Join(dir, ".formetl"),
		Source: source,
		Extract: definition.Extract{
			Settle: definition.DefaultSettle, Lookback: definition.DefaultLookback, Verify: true,
			Changes: definition.ChangesAuto, MaxStaleParts: definition.DefaultMaxStaleParts,
		},
		Outputs: []definition.Output{
			{Path: filepath.Join(dir, "{form}.csv"), Format: "csv", Profile: "strict", Partition: definition.PartitionNone},
			{Path: filepath.Join(dir, "lake", "{form}") + "/", Format: "parquet", Partition: definition.PartitionMonth},
		},
	}
}

// demoSummary tells a newcomer what was written, and what to try next.
func demoSummary(r *pipelines.Report, took time.Duration) []byte {
	f := r.Forms[0]
	csv, lake := f.Outputs[0], f.Outputs[1]
	return fmt.Appendf(nil, `
Done in %s: %s results read once, %s; %d requests.

  %[5]s  (%[6]s, one row a result)
  %[7]s  (Parquet, %[8]d parts by month, %[9]s)

Try next:
  head -n 3 %[5]s
  duckdb -c "SELECT dt, count(*) FROM read_parquet('%[7]s**/*.parquet', hive_partitioning=true, union_by_name=true) GROUP BY dt ORDER BY dt"
  formetl export --help      one form of your own account as a file
  formetl run --help         a pipeline of your own; README.md shows a first definition
`, took.Round(time.Millisecond), show.Thousands(f.Rows), telemetry.Verified(f), r.Requests.Results+r.Requests.Count+r.Requests.Retries,
		csv.Path, show.Size(csv.Bytes), lake.Path, lake.Parts, show.Size(lake.Bytes))
}

// startDemoService starts the embedded test service on a loopback port. stop ends
// it and waits for it.
func startDemoService(ctx context.Context, generate formservice.GenerateOptions) (source definition.Source, stop func(), err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return source, nil, fmt.Errorf("start the test service on loopback: %w", err)
	}
	key := rand.Text()
	server := &http.Server{
		Handler:           &formservice.Server{Key: key, Forms: []*formservice.Form{formservice.Generate(generate)}},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelWarn), // standard error holds the command's own lines only
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // ends when stop closes the server
	source = definition.Source{
		BaseURL: "http://" + listener.Addr().String(), Account: formservice.DefaultAccount, Key: transport.NewSecret(key), Zone: time.UTC,
		Requests: definition.Requests{Concurrency: transport.DefaultConcurrency, Timeout: transport.DefaultTimeout, Retries: transport.DefaultRetries},
	}
	return source, func() {
		_ = server.Close()
		serving.Wait()
	}, nil
}
