package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/built"
	"github.com/formetl/formetl/cmd/internal/demo"
	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
)

func demoCommand(p *process) *cobra.Command {
	var f demo.Settings
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a sample pipeline against a service of its own",
		Long: `Demo starts the embedded test service on loopback with a key of its own, runs a
sample pipeline against it over real HTTP, writes CSV and Parquet, and exits.
It needs no credentials and no network.

It leaves its definition, feedback.yaml. A folder that is not empty it writes to
only if feedback.yaml there is as an earlier demo left it.`,
		Example: `  formetl demo
  formetl demo --results 200000 --dir /tmp/demo`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), p, f) },
	}
	cmd.Flags().IntVar(&f.Results, "results", demo.DefaultResults, "results that the service holds")
	cmd.Flags().StringVar(&f.Dir, "dir", "demo", "folder that the files are written under")
	return cmd
}

func runDemo(ctx context.Context, p *process, f demo.Settings) error {
	generate := formservice.GenerateOptions{Directory: "feedback", Name: "Customer feedback", Results: f.Results, Seed: 1}
	if err := generate.Validate(); err != nil {
		return fmt.Errorf("--results: %w", err)
	}
	o, err := p.start(slog.LevelWarn, new(flags.Range).Options)
	if err != nil {
		return err
	}
	folder := demo.Folder(f.Dir)
	if err := folder.Check(); err != nil {
		return err
	}
	listener, err := listen(ctx, folder.Address())
	if err != nil {
		return err
	}
	text := demo.Definition(listener.Addr().String())
	key, err := folder.Write(text)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer startDemoService(listener, key, generate)()
	def, err := definition.Load(folder.File(), built.Checks(context.Background(), p.lookup))
	if err != nil {
		return err
	}
	p.log.HideKey(def.Source.Key)
	p.log.Tell(slog.LevelInfo, fmt.Sprintf("A test service with %s listens on %s.", show.Plural(f.Results, "result"), def.Source.BaseURL))
	return tellDemo(ctx, p, def, o, f, text)
}

// tellDemo runs the definition and tells what came of it.
func tellDemo(ctx context.Context, p *process, def *definition.Definition, o account.Options, f demo.Settings, text string) error {
	bar, _ := p.log.NewProgress(telemetry.ProgressAuto) // fails for an unknown mode only
	started := time.Now()
	report, err := pipelines.Run(ctx, def, pipelines.Options{Options: o, Progress: bar.Update})
	bar.Finish()
	if err != nil {
		return err
	}
	return show.Print(p.stdout, demo.Summary(report, time.Since(started), f, text))
}

// usualAddress is where the demo's service listens, if nobody else does.
const usualAddress = "127.0.0.1:8420"

// listen listens at an address, the usual one for "". Where somebody else does, it
// takes a free port.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", cmp.Or(address, usualAddress))
	if err != nil {
		listener, err = lc.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("start the test service on loopback: %w", err)
	}
	return listener, nil
}

// startDemoService starts the embedded test service. stop ends it and waits for it.
func startDemoService(listener net.Listener, key string, generate formservice.GenerateOptions) (stop func()) {
	server := &http.Server{
		Handler:           &formservice.Server{Key: key, Forms: []*formservice.Form{formservice.Generate(generate)}},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelWarn), // standard error holds the command's own lines only
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // ends when stop closes the server
	return func() {
		_ = server.Close()
		serving.Wait()
	}
}
