package console

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/schemas/plain"
)

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
