// Package cli is formetl's command line: it builds the tables of formats and
// destinations, turns flags into definitions, and errors into exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/pipelines"
)

// Main runs one command and returns its exit code (contract.md, "Exit
// codes"). Data goes to stdout, everything else to stderr; lookup reads the
// environment.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, lookup func(string) (string, bool)) (code int) {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, lookup: lookup}
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(stderr, "formetl: a bug in formetl: %v\n%s", p, debug.Stack())
			code = exitBug
		}
	}()
	ctx, stop := withSignals(context.Background())
	defer stop()
	root := a.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.began {
		err = &usageError{err}
	}
	if err != nil {
		a.printError(err)
	}
	return exitCode(err)
}

// app is what every command shares.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookup         func(string) (string, bool)

	logFormat, logLevel string
	began               bool // a command's own work has begun: flags and arguments were right
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "formetl",
		Short: "Take the results of online forms to CSV, NDJSON, JSON, Arrow and Parquet",
		Long: `formetl reads the results of online forms from a Form Results Service and
writes every one of them once, as CSV, NDJSON, JSON, Arrow or Parquet.`,
		Example: `  formetl demo
  formetl export --base-url https://fs1.example.com --account acme --form form1 -o form1.csv
  formetl run feedback.yaml`,
		SilenceErrors: true, SilenceUsage: true,
		Version: version(),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	p := root.PersistentFlags()
	p.StringVar(&a.logFormat, "log-format", "text", "logs on standard error as text or json")
	p.StringVar(&a.logLevel, "log-level", "", "least level that is logged: debug, info, warn or error (default info for run, warn else)")
	root.AddCommand(a.runCommand(), a.exportCommand(), a.demoCommand())
	return root
}

// version is the module's version as the build recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// begin marks that flags and arguments were right, and returns the logger.
func (a *app) begin(level slog.Level) (*slog.Logger, error) {
	if a.logLevel != "" {
		if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
			return nil, fmt.Errorf("--log-level %q: give debug, info, warn or error", a.logLevel)
		}
	}
	options := &slog.HandlerOptions{Level: level}
	switch a.logFormat {
	case "text":
		a.began = true
		return slog.New(slog.NewTextHandler(a.stderr, options)), nil
	case "json":
		a.began = true
		return slog.New(slog.NewJSONHandler(a.stderr, options)), nil
	}
	return nil, fmt.Errorf("--log-format %q: give text or json", a.logFormat)
}

// env reads a variable, "" where it is not set.
func (a *app) env(name string) string {
	v, _ := a.lookup(name)
	return v
}

// printError says what failed, as a log record where logs are JSON.
func (a *app) printError(err error) {
	code := exitCode(err)
	if a.logFormat == "json" {
		slog.New(slog.NewJSONHandler(a.stderr, nil)).Error("failed", slog.String("error", err.Error()), slog.Int("exit_code", code))
		return
	}
	text := err.Error()
	var d *pipelines.DefinitionError
	if errors.As(err, &d) {
		text = d.Explain()
	}
	fmt.Fprintf(a.stderr, "formetl: %s\n", strings.TrimRight(text, "\n"))
	if h := hint(err, code); h != "" {
		fmt.Fprintf(a.stderr, "formetl: hint: %s\n", h)
	}
}

// withSignals ends the context on SIGINT and SIGTERM with a *stopError as its
// cause. A second signal ends the process at once.
func withSignals(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&stopError{signal: s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		<-done
	}
}
