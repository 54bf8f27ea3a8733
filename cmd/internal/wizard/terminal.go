package wizard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"github.com/formetl/formetl/cmd/internal/exit"
)

// mostShown is how many choices are seen at once.
const mostShown = 12

// Terminal returns how questions are put to a person on a terminal. It puts them in plain
// lines on a terminal that cannot draw, and if the variable ACCESSIBLE is set.
func Terminal(in io.Reader, out io.Writer, lookup func(string) (string, bool)) func(context.Context, *Page) error {
	t := terminal{in, out}
	name, _ := lookup("TERM")
	if wanted, _ := lookup("ACCESSIBLE"); name == "" || name == "dumb" || wanted != "" {
		return t.plainly
	}
	return t.drawn
}

type terminal struct {
	in  io.Reader
	out io.Writer
}

// drawn asks on a page that is drawn, and gone when it is answered.
func (t terminal) drawn(ctx context.Context, p *Page) error {
	fields := make([]huh.Field, len(p.Fields))
	for i, f := range p.Fields {
		fields[i] = t.field(f, f.Check, true)
	}
	keys := huh.NewDefaultKeyMap()
	keys.Select.Filter.SetEnabled(false) // the lists of these are short
	err := huh.NewForm(huh.NewGroup(fields...)).WithKeyMap(keys).
		WithProgramOptions(tea.WithInput(t.in), tea.WithOutput(t.out), tea.WithoutSignalHandler()).
		RunWithContext(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, huh.ErrUserAborted): // Ctrl-C is a key while a page is drawn
		return &exit.StopError{Signal: os.Interrupt}
	}
	return err
}

// plainly asks line by line.
func (t terminal) plainly(ctx context.Context, p *Page) error {
	in := &watchedReader{Reader: t.in}
	done := make(chan error, 1)
	go func() { done <- t.lines(p, in) }() // ends with the process if a signal comes first
	select {
	case <-ctx.Done():
		fmt.Fprintln(t.out)
		return context.Cause(ctx)
	case err := <-done:
		return err
	}
}

// lines asks for each field until the input ends.
func (t terminal) lines(p *Page, in *watchedReader) (err error) {
	defer func() {
		if in.ended() {
			_ = recover() // huh chooses by the last number, also by one that it refused
			err = exit.Usagef("standard input ended before the questions did; --no-input asks nothing")
		}
	}()
	for _, f := range p.Fields {
		// Without an end of the questions, a field would be asked for ever.
		check := func() error {
			if in.ended() {
				return nil
			}
			return f.Check()
		}
		if note := f.Note(f.Text); note != "" {
			fmt.Fprintf(t.out, "\n%s\n", note)
		}
		err := t.field(f, check, false).WithTheme(huh.ThemeFunc(colourless)).RunAccessible(t.out, in)
		if err != nil || in.ended() {
			return err
		}
	}
	return nil
}

// colourless is a theme without colours, for a terminal that would show their codes.
func colourless(bool) *huh.Styles { return &huh.Styles{} }

// field makes the field of huh. On a drawn page it shows the note.
func (t terminal) field(f *Field, check func() error, drawn bool) huh.Field {
	title, note, focused := f.Title, "", false
	if drawn {
		note = f.Note(f.Text)
	} else if f.Text != "" {
		title += " [" + f.Text + "]"
	}
	switch f.kind {
	case choice:
		return huh.NewSelect[string]().Title(title).Description(note).Options(optionsOf(f)...).Value(&f.Text).
			Validate(func(string) error { return check() })
	case several:
		return huh.NewMultiSelect[string]().Title(f.Title).Description("Space chooses, / searches, Enter goes on.").
			Options(optionsOf(f)...).Height(min(len(f.Choices), mostShown) + 2).Value(&f.List).
			Validate(func([]string) error {
				if drawn && !focused {
					focused = true // huh checks once before anybody can choose
					return nil
				}
				return check()
			})
	case yesNo:
		return huh.NewConfirm().Title(f.Title).Value(&f.Yes)
	case text:
	}
	answer := &shared{field: f}
	input := huh.NewInput().Title(title).Description(note).Accessor(answer).Validate(func(typed string) error {
		answer.Set(typed)
		return check()
	})
	if drawn && f.note != nil {
		input.DescriptionFunc(func() string { return f.Note(answer.Get()) }, &f.Text)
	}
	return input
}

func optionsOf(f *Field) []huh.Option[string] {
	options := make([]huh.Option[string], len(f.Choices))
	for i, c := range f.Choices {
		options[i] = huh.NewOption(c.Label, c.Word)
	}
	return options
}

// shared is a field's text, which a page's note reads while somebody types.
type shared struct {
	mu    sync.Mutex
	field *Field
}

// Get implements huh.Accessor.
func (a *shared) Get() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.field.Text
}

// Set implements huh.Accessor.
func (a *shared) Set(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.field.Text = text
}

// watchedReader remembers that its reader came to its end.
type watchedReader struct {
	io.Reader
	mu  sync.Mutex
	end bool
}

// Read implements io.Reader.
func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		r.mu.Lock()
		r.end = true
		r.mu.Unlock()
	}
	return n, err
}

func (r *watchedReader) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end
}
