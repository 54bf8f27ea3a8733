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
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

const (
	formatText = "text"
	formatJSON = "json"
)

// Log writes to a command's standard error: lines for people, or JSON records that
// programs read.
//
// Keys of records are written as literals in the calls of slog, because a test compares
// the keys with the documentation.
type Log struct {
	*slog.Logger // with the level that Start was given; nil before Start

	out           *screen
	format, level string             // as the flags say
	keys          []transport.Secret // API keys that Panic must not show
	about         []slog.Attr        // the run that messages are about, see About
	causes        sync.Map           // causes of failures of the run's forms that LogForm has told
}

// NewLog returns the log of a command with these arguments. It looks for --log-format in args
// before flags are parsed, so that an error in the flags has that format too.
func NewLog(out io.Writer, args []string) *Log {
	return &Log{out: &screen{Writer: out}, format: formatIn(args)}
}

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

// Register adds the flags of the log, which all commands have.
func (l *Log) Register(flags *pflag.FlagSet) {
	early := l.format
	flags.StringVar(&l.format, "log-format", formatText, "format of the log on standard error: text or json")
	l.format = early
	flags.StringVar(&l.level, "log-level", "", "lowest level to log: debug, info, warn or error (default info for run, otherwise warn)")
}

// Start checks the flags of the log and opens the logger with level, or with --log-level if given.
// An error after Start is no longer taken for one of flags and arguments.
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
		if l.ToPerson() {
			l.Logger = slog.New(&spoken{Handler: l.Handler(), out: l.out})
		}
	default:
		return fmt.Errorf("--log-format %q: give text or json", l.format)
	}
	return nil
}

// Started tells whether the command's own work has begun: its flags and
// arguments were right.
func (l *Log) Started() bool { return l.Logger != nil }

// JSON tells whether every line of the log is a JSON record.
func (l *Log) JSON() bool { return l.format == formatJSON }

// ToPerson tells whether a person reads the log, at a terminal. Otherwise its lines are records,
// which programs and operators search.
func (l *Log) ToPerson() bool { return !l.JSON() && IsTerminal(l.out.Writer) }

// jsonHandler returns a handler that writes one JSON object a line. Durations are numbers of
// seconds, because programs read them.
func jsonHandler(out io.Writer, level slog.Level) slog.Handler {
	return slog.NewJSONHandler(escaped{out}, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			return slog.Float64(a.Key, float64(a.Value.Duration())/1e9) // Seconds() would give 1.5110000000000001: it adds two parts
		}
		return a
	}})
}

// escaped writes records, with characters escaped that could steer a terminal.
type escaped struct{ io.Writer }

func (e escaped) Write(record []byte) (int, error) {
	_, err := e.Writer.Write(plain.JSON(record))
	return len(record), err
}

// About says to which run all further messages belong. Records then name the pipeline and the
// run; lines for people do not.
func (l *Log) About(pipeline, runID string) {
	l.about = []slog.Attr{slog.String("pipeline", pipeline), slog.String("run_id", runID)}
	l.causes.Clear()
}

// Tell says something to people: a line of its own, or a record. The record is written at any
// --log-level, because it is an answer of the command and not a log.
func (l *Log) Tell(level slog.Level, text string, attrs ...slog.Attr) {
	if !l.JSON() {
		fmt.Fprintln(l.out, plain.Lines(text))
		return
	}
	slog.New(jsonHandler(l.out, slog.LevelDebug)).LogAttrs(context.Background(), level, text, slices.Concat(l.about, attrs)...)
}

// Version returns the version of formetl's module as the build recorded it.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Fail reports the error that a command ends with, except runs that the log has told already. hint
// returns what to do next about an error, or "" where the error's text says it. Each failed run is
// told on its own.
func (l *Log) Fail(err error, hint func(error) string) {
	if ReaderGone(err) && !l.JSON() {
		return // the reader had enough, as with `| head`: the exit code says it, as a signal would
	}
	l.out.close()
	for _, part := range failuresOf(err) {
		if l.JSON() {
			l.failJSON(part, hint(part))
		} else {
			l.failText(part, hint(part))
		}
	}
}

// failText writes the lines of a failure: the error, and the hint if there is one.
func (l *Log) failText(err error, hint string) {
	text := strings.TrimRight(err.Error(), "\n")
	if !allDefinitions(err) { // errors of definitions begin with FILE:LINE:COLUMN, for editors
		text = "formetl: " + text
	}
	l.Tell(slog.LevelError, text)
	if hint != "" {
		l.Tell(slog.LevelError, "formetl: hint: "+hint)
	}
}

// allDefinitions tells whether all parts of an error are errors of definitions.
func allDefinitions(err error) bool {
	return !slices.ContainsFunc(Parts(err), func(e error) bool {
		_, is := e.(*definition.Error) //nolint:errorlint // one node of the tree
		return !is
	})
}

// Parts returns the errors that errors.Join put together, or the error itself if it is not joined.
func Parts(err error) []error {
	tree, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // the tree is walked by hand
	if !ok || fmt.Sprintf("%T", err) != "*errors.joinError" {
		return []error{err}
	}
	var parts []error
	for _, e := range tree.Unwrap() {
		parts = append(parts, Parts(e)...)
	}
	return parts
}

// HideKey makes Panic hide an API key.
func (l *Log) HideKey(key transport.Secret) { l.keys = append(l.keys, key) }

// ReportBug says what to do about a bug in formetl.
const ReportBug = "please report it at https://github.com/formetl/formetl/issues with the command and this message, without personal data"

// Panic reports a bug. The value and the stack of a panic may hold anything, so Panic takes the
// API keys out of both.
func (l *Log) Panic(what, stack string) {
	what, stack = transport.RedactAll(what, l.keys...), transport.RedactAll(stack, l.keys...)
	l.out.close()
	if l.JSON() {
		l.Tell(slog.LevelError, "a bug in formetl", slog.String("error", what), slog.String("stack", stack),
			slog.Int("exit_code", ExitBug), slog.String("hint", ReportBug))
		return
	}
	l.Tell(slog.LevelError, "formetl: a bug in formetl: "+what+"; "+ReportBug+"\n"+stack)
}

// RunError is the failure of one of the runs of a command.
type RunError struct {
	Pipeline, RunID string
	NamesPipeline   bool // the command runs several pipelines, so the text names this one
	Told            bool // the log has a record of each form that failed
	Err             error
}

// Error returns the text of the wrapped error, after the pipeline's name if Named is set.
func (e *RunError) Error() string {
	if e.NamesPipeline {
		return e.Pipeline + ": " + e.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap returns why the run failed.
func (e *RunError) Unwrap() error { return e.Err }

// failuresOf divides an error into parts that are each reported: the failed runs that the log has
// not told, and the other errors. An error that is of no run is one part.
func failuresOf(err error) []error {
	var runs, others []error
	told := false
	var walk func(err error)
	walk = func(err error) {
		switch e := err.(type) { //nolint:errorlint // the tree is walked by hand
		case *RunError:
			if told = told || e.Told; !e.Told {
				runs = append(runs, e)
			}
		case interface{ Unwrap() []error }:
			for _, part := range e.Unwrap() {
				walk(part)
			}
		default:
			others = append(others, e)
		}
	}
	walk(err)
	if !told && len(runs) == 0 {
		return []error{err}
	}
	return append(runs, others...)
}

// failJSON writes the record of a failure, with the run that failed.
func (l *Log) failJSON(err error, hint string) {
	attrs := []slog.Attr{slog.String("error", err.Error()), slog.Int("exit_code", ExitCode(err))}
	if hint != "" {
		attrs = append(attrs, slog.String("hint", hint))
	}
	of := Log{out: l.out, format: l.format, about: l.about}
	if run, ok := errors.AsType[*RunError](err); ok {
		of.About(run.Pipeline, run.RunID)
	}
	of.Tell(slog.LevelError, "failed", attrs...)
}

// Outcome returns a word for how a run or a form ended, by its exit code.
func Outcome(code int, begun bool) string {
	if !begun {
		return "not begun"
	}
	return cmp.Or(map[int]string{
		ExitOK: "done", ExitData: "problem with the data", ExitNoInput: "not found", ExitUnavailable: "service failed", ExitBug: "bug",
		ExitCantCreate: "output not created", ExitIO: "output failed", ExitTemporary: "temporary failure", ExitNoPermission: "key or password refused",
		ExitConfig: "definition or address wrong", ExitHungUp: "stopped", ExitInterrupted: "stopped", ExitTerminated: "stopped",
	}[code], "failed")
}

// spoken is the handler of the log at a terminal. It writes a record as a person would say it:
//
//	warning: orders: the codebook could not be written: the disk is full (path out/orders.csv)
//
// It leaves out the time, the run, and figures that are zero.
type spoken struct {
	slog.Handler // decides about the level
	out          io.Writer
	attrs        []slog.Attr // of all records
}

// WithAttrs implements slog.Handler.
func (s *spoken) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &spoken{s.Handler, s.out, slices.Concat(s.attrs, attrs)}
}

// Handle implements slog.Handler.
func (s *spoken) Handle(_ context.Context, r slog.Record) error {
	form, reason, figures, hint := "", "", "", ""
	say := func(a slog.Attr) bool {
		switch value := said(a.Value); {
		case value == "" || a.Key == "" || a.Key == "pipeline" || a.Key == "run_id":
		case a.Key == "form":
			form = value + ": "
		case a.Key == "error" || a.Key == "reason":
			reason = ": " + value
		case a.Key == "hint":
			hint = "\nformetl: hint: " + value
		default:
			figures += ", " + strings.ReplaceAll(a.Key, "_", " ") + " " + value
		}
		return true
	}
	for _, a := range s.attrs {
		say(a)
	}
	if r.Attrs(say); figures != "" {
		figures = " (" + figures[2:] + ")"
	}
	level := map[slog.Level]string{slog.LevelWarn: "warning: ", slog.LevelError: "formetl: "}[r.Level]
	_, err := fmt.Fprintln(s.out, plain.Lines(level+form+r.Message+reason+figures+hint))
	return err
}

// said returns a value of a record as a person would say it, "" for one that says nothing.
func said(v slog.Value) string {
	text := v.String()
	switch v.Kind() {
	case slog.KindInt64:
		text = plain.Thousands(v.Int64())
	case slog.KindTime:
		text = v.Time().Local().Format(time.TimeOnly)
	}
	if text == "0" || text == "0s" || text == "false" {
		return ""
	}
	return text
}
