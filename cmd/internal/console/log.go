package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

const (
	formatText = "text"
	formatJSON = "json"
)

// Log is standard error of a command: lines for people, or records that
// programs read.
//
// Keys of records are written as literals beside slog's constructors, because a test compares
// them with the documentation.
type Log struct {
	*slog.Logger // of the level that Start was given; nil before Start

	out           io.Writer
	format, level string             // as the flags say
	keys          []transport.Secret // that Panic must not show
	about         []slog.Attr        // the run that messages are about, see About
}

// NewLog returns the log of a command with these arguments. --log-format holds
// before flags are parsed, so that an error in the flags takes that form too.
func NewLog(out io.Writer, args []string) *Log { return &Log{out: out, format: formatIn(args)} }

func formatIn(args []string) string {
	format := formatText
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if value, ok := strings.CutPrefix(arg, "--log-format="); ok {
			format = value
		} else if arg == "--log-format" && i+1 < len(args) {
			format = args[i+1]
		}
	}
	return format
}

// Register adds the flags of all commands that say how they log.
func (l *Log) Register(flags *pflag.FlagSet) {
	early := l.format
	flags.StringVar(&l.format, "log-format", formatText, "lines on standard error as text or json")
	l.format = early
	flags.StringVar(&l.level, "log-level", "", "least level that is logged: debug, info, warn or error (default info for run, warn else)")
}

// Start checks the flags and opens the logger. From here on an error is no
// longer one of flags and arguments. --log-level takes the place of level.
func (l *Log) Start(level slog.Level) error {
	if l.level != "" {
		if err := level.UnmarshalText([]byte(l.level)); err != nil {
			return fmt.Errorf("--log-level %q: give debug, info, warn or error", l.level)
		}
	}
	switch l.format {
	case formatJSON:
		l.Logger = slog.New(jsonHandler(l.out, level))
	case formatText:
		l.Logger = slog.New(slog.NewTextHandler(l.out, &slog.HandlerOptions{Level: level}))
	default:
		return fmt.Errorf("--log-format %q: give text or json", l.format)
	}
	return nil
}

// Started tells whether the command's own work has begun: its flags and
// arguments were right.
func (l *Log) Started() bool { return l.Logger != nil }

// JSON tells whether every line is a record.
func (l *Log) JSON() bool { return l.format == formatJSON }

// jsonHandler writes one object a line. A length of time is a number of
// seconds, because programs read it.
func jsonHandler(out io.Writer, level slog.Level) slog.Handler {
	return slog.NewJSONHandler(escaped{out}, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			return slog.Float64(a.Key, float64(a.Value.Duration())/1e9) // Seconds() adds two parts, which gives 1.5110000000000001
		}
		return a
	}})
}

// escaped writes records without what could steer a terminal.
type escaped struct{ io.Writer }

func (e escaped) Write(record []byte) (int, error) {
	_, err := e.Writer.Write(plain.JSON(record))
	return len(record), err
}

// About says of which run everything is that is told from here on. Records name the
// pipeline and the run; lines for people do not.
func (l *Log) About(pipeline, runID string) {
	l.about = []slog.Attr{slog.String("pipeline", pipeline), slog.String("run_id", runID)}
}

// Tell says something to people: a line of its own, or a record. The record is
// written whatever --log-level says, because it is an answer and not a log.
func (l *Log) Tell(level slog.Level, text string, attrs ...slog.Attr) {
	if !l.JSON() {
		fmt.Fprintln(l.out, plain.Lines(text))
		return
	}
	slog.New(jsonHandler(l.out, slog.LevelDebug)).LogAttrs(context.Background(), level, text, slices.Concat(l.about, attrs)...)
}

// Version is the module's version as the build recorded it.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Fail tells the error that a command ends with. hint gives what to do next about an
// error, or "" where the error says it. In JSON each failed run has a record of its own.
func (l *Log) Fail(err error, hint func(error) string) {
	if ReaderGone(err) && !l.JSON() {
		return // the reader had enough, as with `| head`: the exit code says it, as a signal would
	}
	if l.JSON() {
		for _, part := range failuresOf(err) {
			l.failJSON(part, hint(part))
		}
		return
	}
	text := strings.TrimRight(err.Error(), "\n")
	if !allDefinitions(err) { // those begin with FILE:LINE:COLUMN, which editors read
		text = "formetl: " + text
	}
	l.Tell(slog.LevelError, text)
	if next := hint(err); next != "" {
		l.Tell(slog.LevelError, "formetl: hint: "+next)
	}
}

// allDefinitions tells whether an error is about definitions and nothing else.
func allDefinitions(err error) bool {
	return !slices.ContainsFunc(Parts(err), func(e error) bool {
		_, is := e.(*definition.Error) //nolint:errorlint // one node of the tree
		return !is
	})
}

// Parts are the errors that errors.Join put together, or the error itself.
func Parts(err error) []error {
	tree, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // the tree is walked by hand
	if !ok || fmt.Sprintf("%T", err) != "*errors.joinError" {
		return []error{err}
	}
	var all []error
	for _, e := range tree.Unwrap() {
		all = append(all, Parts(e)...)
	}
	return all
}

// HideKey keeps a key out of what Panic shows.
func (l *Log) HideKey(key transport.Secret) { l.keys = append(l.keys, key) }

// Panic tells of a bug. The value and the stack of a panic may hold anything,
// so this is the place where keys are taken out of them.
func (l *Log) Panic(what, stack string) {
	what, stack = transport.RedactAll(what, l.keys...), transport.RedactAll(stack, l.keys...)
	const remedy = "please report it with the command and this message"
	if l.JSON() {
		l.Tell(slog.LevelError, "a bug in formetl", slog.String("error", what), slog.String("stack", stack),
			slog.Int("exit_code", ExitBug), slog.String("hint", remedy))
		return
	}
	l.Tell(slog.LevelError, "formetl: a bug in formetl: "+what+"; "+remedy+"\n"+stack)
}

// RunError is the failure of one run of a command.
type RunError struct {
	Pipeline, RunID string
	Named           bool // the command runs several pipelines, so that the text names this one
	Err             error
}

// Error is the text of the wrapped error.
func (e *RunError) Error() string {
	if e.Named {
		return e.Pipeline + ": " + e.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap returns why the run failed.
func (e *RunError) Unwrap() error { return e.Err }

// failuresOf returns the parts of an error that have a record each. These are the failed
// runs, and what else failed. An error of at most one run is one part.
func failuresOf(err error) []error {
	var runs, others []error
	var walk func(err error)
	walk = func(err error) {
		switch e := err.(type) { //nolint:errorlint // the tree is walked by hand
		case *RunError:
			runs = append(runs, e)
		case interface{ Unwrap() []error }:
			for _, part := range e.Unwrap() {
				walk(part)
			}
		default:
			others = append(others, e)
		}
	}
	walk(err)
	if len(runs) < 2 {
		return []error{err}
	}
	return append(runs, others...)
}

// failJSON writes the record of a failure. It names the run that failed.
func (l *Log) failJSON(err error, hint string) {
	attrs := []slog.Attr{slog.String("error", err.Error()), slog.Int("exit_code", ExitCode(err))}
	if hint != "" {
		attrs = append(attrs, slog.String("hint", hint))
	}
	of := *l
	if run, ok := errors.AsType[*RunError](err); ok {
		of.About(run.Pipeline, run.RunID)
	}
	of.Tell(slog.LevelError, "failed", attrs...)
}

// Outcome says in a word how a run or a form ended, by its exit code.
func Outcome(code int, begun bool) string {
	if !begun {
		return "not begun"
	}
	return cmp.Or(map[int]string{
		ExitOK: "done", ExitData: "data at fault", ExitNoInput: "not found", ExitUnavailable: "service failed", ExitBug: "bug",
		ExitCantCreate: "output not created", ExitIO: "output failed", ExitTemporary: "to be run again", ExitNoPermission: "key refused",
		ExitConfig: "definition wrong", ExitHungUp: "stopped", ExitInterrupted: "stopped", ExitTerminated: "stopped",
	}[code], "failed")
}
