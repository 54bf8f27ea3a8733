// Package program holds how formetl and formetl-worker make their root command and run it,
// their streams, which a signal frees, and the fault points of both. Begin reading with Run.
package program

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/telemetry"
)

// Root gives a program's root command what all of them have: the version, the flags of the
// log, and help in place of an action. The command has its texts, and gets its streams and
// its commands from the caller.
func Root(root *cobra.Command, log *telemetry.Log) *cobra.Command {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = fmt.Sprintf("%s (%s, %s/%s)", telemetry.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	root.Args = flags.Subcommand
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.PersistentPreRunE = flags.Paths
	root.SetFlagErrorFunc(flags.Unknown)
	root.CompletionOptions.HiddenDefaultCmd = true
	log.Register(root.PersistentFlags())
	return root
}

// longest is how long a command may take to end in order after a signal.
const longest = 2200 * time.Millisecond

// Run runs a command and returns its exit code. settle stops the catching of signals, see
// exit.OnSignal. hint says what to do about an error of the command of that path. A panic is
// reported as a bug.
//
// A command that a signal stops ends in order. Where something holds it, such as a store
// that does not answer, Run returns without it, and what still hangs ends with the process.
func Run(ctx context.Context, settle func(), root *cobra.Command, args []string, log *telemetry.Log, hint func(err error, command string) string) int {
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, settle, root, args, log, hint) }()
	select {
	case code := <-ended:
		return code
	case <-ctx.Done():
	}
	stopped, ok := errors.AsType[*exit.StopError](context.Cause(ctx))
	if !ok {
		return <-ended
	}
	select {
	case code := <-ended:
		return code
	case <-time.After(longest):
		log.Fail(fmt.Errorf("%w, and not in order, because something did not answer for %s; a lease that it holds at a store may last for a minute", stopped, longest),
			func(error) string { return "" })
		return exit.Code(stopped)
	}
}

// run is Run without its bound.
func run(ctx context.Context, settle func(), root *cobra.Command, args []string, log *telemetry.Log, hint func(err error, command string) string) (code int) {
	defer func() {
		if v := recover(); v != nil {
			code = exit.Bug
			log.Panic(fmt.Sprint(v), string(debug.Stack()))
		}
	}()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	settle()
	if err = exit.Judge(ctx, err, log.Started()); err != nil {
		log.Fail(err, func(err error) string { return hint(err, cmd.CommandPath()) })
	}
	return exit.Code(err)
}
