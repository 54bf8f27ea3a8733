// Package console holds what formetl and formetl-worker share: how a root command is made
// and run, checks of arguments, flags, exit codes, log and progress, tables and JSON on a
// terminal, and the formats and destinations that both are built with (built.go).
//
// Data goes to standard output in one write. Everything else goes to standard error through a Log,
// as lines for people or as JSON records. Names come from services and files, so they are printed
// without characters that could steer a terminal. An error of any package tells its exit code by a
// method ExitCode and what to do next by a method Hint, so console need not know other packages'
// errors. Names and help of flags, exit codes, keys of log records, and the report are a contract
// with users.
//
// The package has no command of its own, and makes no file.
//
// Begin reading at Run, then ExitCode, ServiceFlags, Log and Progress.
package console

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
)

// Root sets what the root commands of both programs share: the version, the flags of the log, and
// help in place of an action. The caller gives the command its texts, streams and subcommands.
func Root(root *cobra.Command, log *Log) *cobra.Command {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = fmt.Sprintf("%s (%s, %s/%s)", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	root.Args = Subcommand
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.PersistentPreRunE = checkPaths
	root.SetFlagErrorFunc(unknownFlag)
	root.CompletionOptions.HiddenDefaultCmd = true
	log.Register(root.PersistentFlags())
	return root
}

// longest is how long a command may take to end in order after a signal.
const longest = 2200 * time.Millisecond

// Run runs a command and returns its exit code. stopCatching stops the catching of signals, see
// OnSignal. hint returns what to do about an error of the command with that path. A panic is
// reported as a bug.
//
// A command that a signal stops ends in order. If something holds it up, such as a store that does
// not answer, Run returns after the time longest, and what still hangs ends with the process.
func Run(ctx context.Context, stopCatching func(), root *cobra.Command, args []string, log *Log, hint func(err error, command string) string) int {
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, stopCatching, root, args, log, hint) }()
	select {
	case code := <-ended:
		return code
	case <-ctx.Done():
	}
	stopped, ok := errors.AsType[*StopError](context.Cause(ctx))
	if !ok {
		return <-ended
	}
	select {
	case code := <-ended:
		return code
	case <-time.After(longest):
		log.Fail(fmt.Errorf("%w without cleaning up, because a store, a database or a disk did not answer for %s; the outputs may stay locked for another minute, in which a new run ends with 75", stopped, longest),
			func(error) string { return "" })
		return ExitCode(stopped)
	}
}

// run is Run without the bound longest.
func run(ctx context.Context, stopCatching func(), root *cobra.Command, args []string, log *Log, hint func(err error, command string) string) (code int) {
	defer func() {
		if v := recover(); v != nil {
			code = ExitBug
			log.Panic(fmt.Sprint(v), string(debug.Stack()))
		}
	}()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	stopCatching()
	if err = judge(ctx, err, log.Started()); err != nil {
		log.Fail(err, func(err error) string { return hint(err, cmd.CommandPath()) })
	}
	return ExitCode(err)
}
