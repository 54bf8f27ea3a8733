// Package cli is formetl's command line: it builds the tables of formats and
// destinations, turns flags into definitions, and errors into exit codes.
package cli

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/extract/transport"
)

// Main runs one command and returns its exit code (contract.md, "Exit
// codes"). Data goes to stdout, everything else to stderr; lookup reads the
// environment.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, lookup func(string) (string, bool)) int {
	ctx, settle := withSignals(context.Background()) // before anything that takes time
	defer settle()
	// What the standard library says on its own (net/http of a stray answer) is
	// no record, and may hold an answer's bytes.
	log.SetOutput(io.Discard)
	collectSooner(lookup)
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, lookup: lookup, logFormat: formatIn(args), settleSignals: settle}
	return a.main(ctx, a.rootCommand(), args)
}

// app is what every command shares.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookup         func(string) (string, bool)

	settleSignals func() // signals that came up to now have ended the context when it returns, and later ones do not

	logFormat, logLevel string
	logs                *logs
	keys                []transport.Secret // that were read, for what a panic may show
	began               bool               // a command's own work has begun: flags and arguments were right
	kept                string             // what of it another command can go on from, for hint
}

// main runs a command and tells its exit code. A panic is a bug, said so.
func (a *app) main(ctx context.Context, root *cobra.Command, args []string) (code int) {
	defer func() {
		if p := recover(); p != nil {
			code = exitBug
			a.printPanic(fmt.Sprint(p), debug.Stack())
		}
	}()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	a.settleSignals()
	if err = a.judge(ctx, err); err != nil {
		a.printError(err, cmd.CommandPath())
	}
	return exitCode(err)
}

// judge gives a command's end its class where only the circumstances tell it:
// what fails before a command's work is wrong usage. A command that was told to
// stop before it had ended was stopped, whatever it came to: it never ends as
// one that was left to finish.
func (a *app) judge(ctx context.Context, err error) error {
	if err != nil && !a.began && classify(err) == exitBug {
		err = &usageError{err}
	}
	stopped, ok := context.Cause(ctx).(*stopError) //nolint:errorlint // withSignals sets it bare
	switch {
	case !ok || is[*stopError](err) && exitCode(err) == exitCode(stopped):
		return err
	case err == nil || classify(err) == exitBug || classify(err) == exitInterrupt:
		return stopped
	}
	return fmt.Errorf("%w; %w", stopped, err)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "formetl",
		Short: "Take the results of online forms to CSV, NDJSON, JSON, Arrow and Parquet",
		Long: `formetl reads the results of online forms from a Form Results Service and
writes every one of them once, as CSV, NDJSON, JSON, Arrow or Parquet.

Data goes to standard output, everything else to standard error. The API key
comes from a file (--api-key-file), from a reference in the definition, or from
the environment variable FORMETL_API_KEY; never from a flag's value.

Exit codes: 0 done; 64 wrong flags; 65 data; 66 no such form or account; 69 the
service failed; 70 a bug; 73 cannot create the output; 74 I/O; 75 temporary, run
again; 77 the key was refused; 78 the definition is wrong; 130, 143 stopped.`,
		Example: `  formetl demo
  formetl export --base-url https://fs1.example.com --account acme --form form1 -o form1.csv
  formetl run feedback.yaml`,
		SilenceErrors: true, SilenceUsage: true,
		Version: version(),
		Args:    knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = true
	p := root.PersistentFlags()
	early := a.logFormat // an error in the flags takes that form too
	p.StringVar(&a.logFormat, "log-format", formatText, "lines on standard error as text or json")
	a.logFormat = early
	p.StringVar(&a.logLevel, "log-level", "", "least level that is logged: debug, info, warn or error (default info for run, warn else)")
	root.AddCommand(
		a.runCommand(), a.exportCommand(), a.planCommand(), a.validateCommand(), a.schemaCommand(),
		a.formsCommand(), a.statusCommand(), a.publishCommand(), a.countCommand(), a.copyCommand(), a.demoCommand(), a.cleanCommand(), a.replayCommand(), a.stateCommand(),
	)
	return root
}

// version is the module's version as the build recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// env reads a variable, "" where it is not set.
func (a *app) env(name string) string {
	v, _ := a.lookup(name)
	return v
}

// withSignals ends the context on SIGINT and SIGTERM with a *stopError as its
// cause. A second signal ends the process at once. SIGPIPE is taken too: a
// reader of standard output that goes away is an error of that write, and
// what was staged is still cleaned up.
//
// settle gives the signals up again. Those that came before it have ended the
// context by its return; it may be called more than once.
func withSignals(parent context.Context) (ctx context.Context, settle func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals, pipes := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	signal.Notify(pipes, syscall.SIGPIPE)
	settled, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&stopError{signal: s})
		case <-settled:
		}
	}()
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals) // no signal is on its way to the channel after it
		signal.Stop(pipes)
		close(settled)
		<-done
		select {
		case s := <-signals:
			cancel(&stopError{signal: s})
		default:
			cancel(nil)
		}
	})
}
