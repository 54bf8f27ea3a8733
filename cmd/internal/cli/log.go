package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines"
)

const (
	formatText = "text"
	formatJSON = "json"

	levelInfo = slog.LevelInfo
	levelWarn = slog.LevelWarn
)

// logs is standard error: lines for people, or records that programs read.
// With JSON every line is a record, what people are told too.
type logs struct {
	*slog.Logger
	out  io.Writer
	json bool
}

func newLogs(out io.Writer, format string, level slog.Level) *logs {
	if format == formatJSON {
		return &logs{Logger: slog.New(jsonHandler(out, level)), out: out, json: true}
	}
	return &logs{Logger: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})), out: out}
}

// jsonHandler writes one object a line. Programs read it: a length of time is
// a number of seconds.
func jsonHandler(out io.Writer, level slog.Level) slog.Handler {
	return slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			return slog.Float64(a.Key, a.Value.Duration().Seconds())
		}
		return a
	}})
}

// tell says something to people: a line of its own, or a record. A record is
// written whatever the level: it is an answer, not a log.
func (l *logs) tell(level slog.Level, text string, attrs ...slog.Attr) {
	if !l.json {
		fmt.Fprintln(l.out, text)
		return
	}
	slog.New(jsonHandler(l.out, slog.LevelDebug)).LogAttrs(context.Background(), level, text, attrs...)
}

// begin marks that flags and arguments were right, and returns the logger.
func (a *app) begin(level slog.Level) (*logs, error) {
	if a.logLevel != "" {
		if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
			return nil, fmt.Errorf("--log-level %q: give debug, info, warn or error", a.logLevel)
		}
	}
	if a.logFormat != formatText && a.logFormat != formatJSON {
		return nil, fmt.Errorf("--log-format %q: give text or json", a.logFormat)
	}
	a.began = true
	a.logs = newLogs(a.stderr, a.logFormat, level)
	return a.logs, nil
}

// beginWith begins a command that works with a pipeline: its log is also that
// of the destinations.
func (a *app) beginWith(level slog.Level, o *pipelines.Options) (*logs, error) {
	log, err := a.begin(level)
	if err != nil {
		return nil, err
	}
	o.Logger, o.Tables.Open = log.Logger, opener(log.Logger)
	return log, nil
}

// stderrLogs are the logs, also before begin.
func (a *app) stderrLogs() *logs {
	if a.logs == nil {
		a.logs = newLogs(a.stderr, a.logFormat, levelWarn)
	}
	return a.logs
}

// formatIn finds --log-format before flags are parsed, so that an error in
// the flags takes that form too.
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

// printError says what failed and, where it is known, what to do next.
func (a *app) printError(err error, command string) {
	code := exitCode(err)
	l := a.stderrLogs()
	if is[*pipelines.StdoutError](err) && errors.Is(err, syscall.EPIPE) && !l.json {
		return // the reader had enough, as with `| head`: the exit code says it, as a signal would
	}
	h := hint(err, code, command, a.kept)
	if l.json {
		attrs := []slog.Attr{slog.String("error", err.Error()), slog.Int("exit_code", code)}
		if h != "" {
			attrs = append(attrs, slog.String("hint", h))
		}
		l.tell(slog.LevelError, "failed", attrs...)
		return
	}
	text := strings.TrimRight(explain(err), "\n")
	if !allDefinitions(err) { // those begin with FILE:LINE:COLUMN, which editors read
		text = "formetl: " + text
	}
	l.tell(slog.LevelError, text)
	if h != "" {
		l.tell(slog.LevelError, "formetl: hint: "+h)
	}
}

// explain is an error's text; definitions show the lines that are wrong.
func explain(err error) string {
	var d *pipelines.DefinitionError
	if children := several(err); children != nil {
		texts := make([]string, len(children))
		for i, e := range children {
			texts[i] = explain(e)
		}
		return strings.Join(texts, "\n")
	}
	if errors.As(err, &d) {
		return d.Explain()
	}
	return err.Error()
}

// allDefinitions tells whether an error is about definitions and nothing else.
func allDefinitions(err error) bool {
	children := several(err)
	for _, e := range children {
		if !allDefinitions(e) {
			return false
		}
	}
	_, is := err.(*pipelines.DefinitionError) //nolint:errorlint // one node of the tree
	return is || len(children) > 0
}

// several are the errors that errors.Join put together, nil for any other.
func several(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // the tree is walked by hand
	if !ok || fmt.Sprintf("%T", err) != "*errors.joinError" {
		return nil
	}
	return joined.Unwrap()
}

// printPanic tells of a bug. What panicked may hold anything, so the key is
// taken out here, where the text is made.
func (a *app) printPanic(what string, stack []byte) {
	for _, key := range a.keys {
		what, stack = key.Redact(what), []byte(key.Redact(string(stack)))
	}
	const remedy = "please report it with the command and this message"
	l := a.stderrLogs()
	if l.json {
		l.tell(slog.LevelError, "a bug in formetl", slog.String("error", what), slog.String("stack", string(stack)),
			slog.Int("exit_code", exitBug), slog.String("hint", remedy))
		return
	}
	l.tell(slog.LevelError, "formetl: a bug in formetl: "+what+"; "+remedy+"\n"+string(stack))
}

// usesKey remembers a key for printPanic.
func (a *app) usesKey(key transport.Secret) { a.keys = append(a.keys, key) }
