package wizard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/nearest"
	"github.com/formetl/formetl/schemas/plain"
)

const (
	// patience bounds how long a request is tried while somebody waits.
	patience = 10 * time.Second
	// mostCounts is how many forms are counted, each by one request.
	mostCounts = 20
	// countsAtOnce is how many of these requests are under way at once.
	countsAtOnce = 4
	// shownForms is how many forms an error names.
	shownForms = 5
	// everyForm is the glob of all forms.
	everyForm = "*"
)

// reachService asks who is asked, and tries it by listing the forms. A person may mend
// what the service refuses.
func (s *Session) reachService(ctx context.Context) error {
	names := []string{"base-url", "account", "api-key-reference"}
	for {
		if err := s.ask(ctx, names...); err != nil {
			return err
		}
		err := s.listForms(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case s.o.Ask == nil:
			return err
		}
		s.o.Tell(fmt.Sprintf("\n%v\n%s\n", err, exit.Hint(err, "formetl init", "", "")))
		for _, name := range names {
			s.retried[name] = s.value(name)
			delete(s.answers, name)
		}
	}
}

// source is a definition with the answers so far and the key, with which the service is asked.
func (s *Session) source(ctx context.Context) (*definition.Definition, error) {
	o := s.o.Load
	o.Key = s.key
	def, err := definition.Parse(s.value("output"), []byte(definitionText(s, "")), o)
	if err != nil {
		return nil, s.asAnswer(err)
	}
	s.key = def.Source.Key
	s.o.HideKey(s.key)
	def.Source.Requests.Patience = patience
	return def, ctx.Err()
}

// listForms asks for the account's forms, by one request.
func (s *Session) listForms(ctx context.Context) error {
	s.key = transport.Secret{}
	client, err := s.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	s.listed, err = client.Forms(ctx)
	if err == nil && len(s.listed) == 0 {
		err = &exit.Error{Code: exit.NoInput, Err: fmt.Errorf("the account %s has no forms", s.value("account"))}
	}
	return err
}

func (s *Session) client(ctx context.Context) (extract.Client, error) {
	def, err := s.source(ctx)
	if err != nil {
		return nil, err
	}
	return account.NewClient(ctx, def, s.o.Account)
}

// chooseForms asks for the forms. They are counted only if somebody is asked.
func (s *Session) chooseForms(ctx context.Context) error {
	if s.o.Ask != nil && !s.answered("form") {
		if err := countForms(ctx, s); err != nil {
			return err
		}
	}
	var known []string
	for _, f := range s.listed {
		known = append(known, f.Directory)
	}
	if s.o.Ask == nil && !s.answered("form") && len(known) > 1 {
		some := plain.Line(strings.Join(known[:min(len(known), shownForms)], ", "))
		return exit.Usagef("nobody is there to ask: give --form; the account has %s, such as %s", show.Plural(len(known), "form"), some)
	}
	if err := s.ask(ctx, "form"); err != nil {
		return err
	}
	for _, form := range s.values("form") {
		if definition.IsGlob(form) || slices.Contains(known, form) {
			continue
		}
		err := fmt.Errorf("--form %s: the account has no such form", plain.Line(form))
		if near := nearest.Word(form, known); near != "" {
			err = fmt.Errorf("%w; did you mean %s?", err, plain.Line(near))
		}
		return &exit.Error{Code: exit.NoInput, Err: err}
	}
	if len(chosenForms(s)) == 0 {
		return &exit.Error{Code: exit.NoInput, Err: fmt.Errorf("--form %s: no form of the account matches it", plain.Line(s.value("form")))}
	}
	return nil
}

// countForms asks how many results the first forms have. A form that cannot be counted
// is shown without a number.
func countForms(ctx context.Context, s *Session) error {
	client, err := s.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	counted := s.listed[:min(len(s.listed), mostCounts)]
	s.o.Tell(fmt.Sprintf("The account has %s. Counting results ...", show.Plural(len(s.listed), "form")))
	counts := make([]int64, len(counted))
	var group errgroup.Group
	group.SetLimit(countsAtOnce)
	for i, f := range counted {
		group.Go(func() error {
			var err error
			if counts[i], err = client.Count(ctx, f.Directory, extract.CountQuery{}); err != nil {
				counts[i] = extract.Unknown
			}
			return nil
		})
	}
	_ = group.Wait() // what cannot be counted is not shown
	for i, f := range counted {
		if counts[i] != extract.Unknown {
			s.sizes[f.Directory] = counts[i]
		}
	}
	return context.Cause(ctx)
}

// onlyForm is the account's form if it has but one.
func onlyForm(s *Session) string {
	if len(s.listed) == 1 {
		return s.listed[0].Directory
	}
	return ""
}

func formProblem(s *Session) string {
	if forms := s.values("form"); len(forms) > 1 && slices.Contains(forms, everyForm) {
		return everyForm + " is every form: choose it alone, or single forms"
	}
	return ""
}

// formChoices are the account's forms with their names and sizes.
func formChoices(s *Session) []Choice {
	rows := show.Rows([][]string{{everyForm, "every form, also those that come later", ""}}, s.listed, func(f extract.Form) []string {
		size := ""
		if n, counted := s.sizes[f.Directory]; counted {
			size = show.Plural(n, "result")
		}
		return []string{plain.Cut(plain.Line(f.Directory), 24), plain.Cut(plain.Line(f.Name), 38), size}
	})
	choices := make([]Choice, len(rows))
	for i, label := range strings.Split(strings.TrimRight(show.Columns("", rows), "\n"), "\n") {
		choices[i] = Choice{everyForm, label}
		if i > 0 {
			choices[i].Word = s.listed[i-1].Directory
		}
	}
	return choices
}

// chosenForms are the forms of the account that the answer means, in the account's order.
func chosenForms(s *Session) []string {
	def := definition.Definition{Forms: s.values("form")}
	var forms []string
	for _, f := range s.listed {
		if def.WantsForm(f.Directory) {
			forms = append(forms, f.Directory)
		}
	}
	return forms
}

// singleForm is the only form that is named, "" if there are several or globs.
func singleForm(s *Session) string {
	if forms := s.values("form"); len(forms) == 1 && !definition.IsGlob(forms[0]) {
		return forms[0]
	}
	return ""
}
