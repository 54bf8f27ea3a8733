package telemetry

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines"
)

// Fail tells the error that a command ends with, and a hint where there is one.
func (l *Log) Fail(err error, hint string) {
	if _, ok := errors.AsType[*pipelines.StdoutError](err); ok && errors.Is(err, syscall.EPIPE) && !l.JSON() {
		return // the reader had enough, as with `| head`: the exit code says it, as a signal would
	}
	if l.JSON() {
		attrs := []slog.Attr{slog.String("error", err.Error()), slog.Int("exit_code", exit.Code(err))}
		if hint != "" {
			attrs = append(attrs, slog.String("hint", hint))
		}
		l.Tell(slog.LevelError, "failed", attrs...)
		return
	}
	text := strings.TrimRight(Explain(err), "\n")
	if !allDefinitions(err) { // those begin with FILE:LINE:COLUMN, which editors read
		text = "formetl: " + text
	}
	l.Tell(slog.LevelError, text)
	if hint != "" {
		l.Tell(slog.LevelError, "formetl: hint: "+hint)
	}
}

// Explain is an error's text. Of a definition it shows the lines that are wrong.
func Explain(err error) string {
	if children := joined(err); children != nil {
		texts := make([]string, len(children))
		for i, e := range children {
			texts[i] = Explain(e)
		}
		return strings.Join(texts, "\n")
	}
	if d, ok := errors.AsType[*pipelines.DefinitionError](err); ok {
		return d.Explain()
	}
	return err.Error()
}

// allDefinitions tells whether an error is about definitions and nothing else.
func allDefinitions(err error) bool {
	children := joined(err)
	for _, e := range children {
		if !allDefinitions(e) {
			return false
		}
	}
	_, is := err.(*pipelines.DefinitionError) //nolint:errorlint // one node of the tree
	return is || len(children) > 0
}

// joined are the errors that errors.Join put together, nil for any other.
func joined(err error) []error {
	tree, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // the tree is walked by hand
	if !ok || fmt.Sprintf("%T", err) != "*errors.joinError" {
		return nil
	}
	return tree.Unwrap()
}

// HideKey keeps a key out of what Panic shows.
func (l *Log) HideKey(key extract.Secret) { l.keys = append(l.keys, key) }

// Panic tells of a bug. The value and the stack of a panic may hold anything,
// so this is the place where keys are taken out of them.
func (l *Log) Panic(what, stack string) {
	for _, key := range l.keys {
		what, stack = key.Redact(what), key.Redact(stack)
	}
	const remedy = "please report it with the command and this message"
	if l.JSON() {
		l.Tell(slog.LevelError, "a bug in formetl", slog.String("error", what), slog.String("stack", stack),
			slog.Int("exit_code", exit.Bug), slog.String("hint", remedy))
		return
	}
	l.Tell(slog.LevelError, "formetl: a bug in formetl: "+what+"; "+remedy+"\n"+stack)
}
