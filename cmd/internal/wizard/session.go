package wizard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

// Options are what a session works with.
type Options struct {
	// Ask puts a page of questions to a person. It is nil where nobody is there to answer.
	Ask func(context.Context, *Page) error
	// Tell says something to a person, on standard error.
	Tell func(text string)
	// Load says what definitions are checked against, and where references to keys lead.
	Load definition.LoadOptions
	// Account says how the service is asked.
	Account account.Options
	// HideKey keeps a key out of what is shown.
	HideKey func(transport.Secret)
}

// Session is a definition in the making: the answers that are known so far, and what the
// service has told.
type Session struct {
	o       Options
	flags   *Flags
	api     definition.API
	answers map[string][]string   // by question; those of an output are of the one in the making
	outputs []map[string]string   // the outputs before it: their answers by question
	later   []map[string][]string // what flags answer for the outputs after it
	retried map[string]string     // answers that the service refused, to be asked again
	key     transport.Secret
	listed  []extract.Form
	sizes   map[string]int64 // results by form, of those that were counted
	newest  []dated
}

// Begin asks, tries the answers at the service, and writes the files. The error of a
// missing or a wrong answer is wrong usage and names the flag.
func Begin(ctx context.Context, f *Flags, o Options) (*Session, error) {
	s := &Session{o: o, flags: f, answers: f.given(), retried: map[string]string{}, sizes: map[string]int64{}}
	var err error
	if s.api, err = flags.API(f.api, o.Load.Lookup); err != nil {
		return nil, &exit.Error{Code: exit.Usage, Err: err}
	}
	if err := s.useKeyFile(); err != nil {
		return nil, err
	}
	if err := s.distribute(); err != nil {
		return nil, err
	}
	if err := s.checkGiven(); err != nil {
		return nil, err
	}
	if o.Ask != nil {
		o.Tell("Enter takes what is proposed. Ctrl-C ends this, and leaves nothing behind.")
	}
	for _, step := range []func(context.Context) error{s.reachService, s.chooseForms, s.chooseZone, s.chooseOutputs, s.chooseFiles, s.writeFiles} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// File is the definition that was written.
func (s *Session) File() string { return s.value("output") }

// WantsRun asks whether the definition shall be run at once.
func (s *Session) WantsRun(ctx context.Context) (bool, error) {
	err := s.ask(ctx, "run")
	return s.value("run") == yes, err
}

// useKeyFile turns --api-key-file into a reference, whose path begins at the definition.
func (s *Session) useKeyFile() error {
	path := s.flags.keyFile
	switch {
	case path == "":
		return nil
	case s.answered("api-key-reference"):
		return exit.Usagef("--api-key-file and --api-key-reference both say where the key is: give one of them")
	}
	s.answers["api-key-reference"] = []string{rebased("${file:"+filepath.ToSlash(path)+"}", ".", s.folder())}
	return nil
}

// distribute gives each output its answers. A flag that is given once is for all outputs
// that it suits. One that is given more often has an answer for each output.
func (s *Session) distribute() error {
	count := 1
	for _, q := range outputQuestions() {
		count = max(count, len(s.answers[q.Flag]))
	}
	outputs := make([]map[string][]string, count)
	for i := range outputs {
		outputs[i] = map[string][]string{}
	}
	for _, q := range outputQuestions() {
		values := s.answers[q.Flag]
		if len(values) > 1 && len(values) < count {
			return exit.Usagef("--%s: given %d times for %d outputs; give it once for all that it suits, or once for each", q.Flag, len(values), count)
		}
		for i := range outputs {
			if len(values) > 0 {
				outputs[i][q.Flag] = []string{values[min(i, len(values)-1)]}
			}
		}
	}
	for _, q := range outputQuestions() {
		if len(s.answers[q.Flag]) < count {
			s.keepWhereItSuits(q, outputs)
		}
		delete(s.answers, q.Flag)
	}
	maps.Copy(s.answers, outputs[0])
	s.later = outputs[1:]
	return nil
}

// keepWhereItSuits takes an answer from the outputs for which the question does not arise.
// Where it arises for none, the answer stays, and is refused as that of a single output.
func (s *Session) keepWhereItSuits(q Question, outputs []map[string][]string) {
	unsuited := slices.DeleteFunc(slices.Clone(outputs), func(answers map[string][]string) bool {
		return q.when == nil || q.when(&Session{o: s.o, flags: s.flags, answers: answers})
	})
	if len(unsuited) == len(outputs) {
		return
	}
	for _, answers := range unsuited {
		delete(answers, q.Flag)
	}
}

// output is the output in the making, with what is proposed.
func (s *Session) output() map[string]string {
	out := map[string]string{}
	for _, q := range outputQuestions() {
		out[q.Flag] = s.value(q.Flag)
	}
	return out
}

// nextOutput begins another output.
func (s *Session) nextOutput() {
	s.outputs = append(s.outputs, s.output())
	for _, q := range outputQuestions() {
		delete(s.answers, q.Flag)
	}
	if len(s.later) > 0 {
		maps.Copy(s.answers, s.later[0])
		s.later = s.later[1:]
	}
}

// folder is where the definition will lie, as far as is known.
func (s *Session) folder() string { return filepath.Dir(s.value("output")) }

// rebased is a reference to a file, seen from another folder. Other references stay.
func rebased(reference, from, to string) string {
	path, is := strings.CutPrefix(reference, "${file:")
	path, ends := strings.CutSuffix(path, "}")
	if !is || !ends || from == to || filepath.IsAbs(path) {
		return reference
	}
	there, err := filepath.Abs(filepath.Join(from, path))
	if err != nil {
		return reference
	}
	if here, err := filepath.Abs(to); err == nil {
		if relative, err := filepath.Rel(here, there); err == nil {
			there = relative
		}
	}
	return "${file:" + filepath.ToSlash(there) + "}"
}

func (s *Session) answered(flag string) bool { return len(s.answers[flag]) > 0 }

// value is the answer to a question, or else what is proposed.
func (s *Session) value(flag string) string { return strings.Join(s.values(flag), ", ") }

func (s *Session) values(flag string) []string {
	if s.answered(flag) {
		return s.answers[flag]
	}
	q := question(flag)
	if q.when != nil && flag != "kind" && !q.when(s) {
		return nil
	}
	if proposed := s.proposal(q); proposed != "" {
		return []string{proposed}
	}
	return nil
}

func (s *Session) proposal(q Question) string {
	if before, ok := s.retried[q.Flag]; ok {
		return before
	}
	if q.propose == nil {
		return ""
	}
	return q.propose(s)
}

// ask puts the questions that arise and have no answer yet. Where nobody is there, it
// takes what is proposed.
func (s *Session) ask(ctx context.Context, names ...string) error {
	var open []Question
	for _, name := range names {
		if q := question(name); !s.answered(name) && (q.when == nil || q.when(s)) {
			open = append(open, q)
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(open) == 0:
		return nil
	case s.o.Ask == nil:
		return s.takeProposals(open)
	}
	page := newPage(s, open)
	if err := s.o.Ask(ctx, page); err != nil {
		return err
	}
	for _, f := range page.Fields {
		s.answers[f.Flag] = f.Answer()
	}
	s.o.Tell(answersText(page.Fields))
	return s.wrong(names)
}

// takeProposals answers questions where nobody is there to ask.
func (s *Session) takeProposals(open []Question) error {
	var missing, names []string
	for _, q := range open {
		proposed := s.proposal(q)
		if proposed == "" && !q.optional {
			missing = append(missing, "--"+q.Flag+" ("+q.Help+")")
			continue
		}
		names = append(names, q.Flag)
		if proposed != "" {
			s.answers[q.Flag] = []string{proposed}
		}
	}
	if len(missing) > 0 {
		return exit.Usagef("nobody is there to ask: give %s", strings.Join(missing, "; "))
	}
	return s.wrong(names)
}

// checkGiven checks what flags say, before anybody is asked, and the name of the
// definition if it follows from them.
func (s *Session) checkGiven() error {
	if s.o.Ask == nil && s.answered("form") {
		s.answers["output"] = s.values("output")
	}
	var names []string
	for _, q := range Questions() {
		if s.answered(q.Flag) {
			names = append(names, q.Flag)
		}
	}
	if err := s.wrong(names); err != nil || len(s.later) == 0 {
		return err
	}
	next := *s
	next.answers = maps.Clone(s.answers)
	next.nextOutput()
	return next.checkGiven()
}

// wrong is the error of the first of these questions whose answer is wrong.
func (s *Session) wrong(names []string) error {
	for _, name := range names {
		text := s.problem(question(name))
		if text == "" || !s.answered(name) {
			continue
		}
		if name == "output" {
			if there := existing(s); there != "" {
				return &load.CreateError{Op: "write", Path: there, Hint: "give another name by --output, or --force to replace it", Err: fs.ErrExist}
			}
		}
		return exit.Usagef("--%s: %s", name, text)
	}
	return nil
}

// problem says what is wrong with the answer to a question, "" for nothing.
func (s *Session) problem(q Question) string {
	if q.check != nil {
		if text := q.check(s); text != "" {
			return text
		}
	}
	if len(q.keys) == 0 {
		return ""
	}
	_, err := s.parse(definitionText(s, ""), q.Flag == "api-key-reference")
	wrong, ok := errors.AsType[*definition.Error](err)
	if !ok {
		return ""
	}
	for _, p := range wrong.Problems {
		if s.isAbout(p, q) {
			return advice(s, q, p)
		}
	}
	return ""
}

// isAbout tells whether a problem is one with the answer to a question.
func (s *Session) isAbout(p definition.Problem, q Question) bool {
	return slices.ContainsFunc(q.keys, func(key string) bool {
		return within(p.Key, strings.Replace(key, "[]", fmt.Sprintf("[%d]", len(s.outputs)), 1))
	})
}

// within tells whether a path of keys is another one or lies in it.
func within(path, key string) bool {
	rest, ok := strings.CutPrefix(path, key)
	return ok && (rest == "" || rest[0] == '[' || rest[0] == '.')
}

// advice is a definition's problem in the words of somebody who answers a question.
func advice(s *Session, q Question, p definition.Problem) string {
	for i, out := range s.outputs { // a line of a definition that is not written yet says nothing
		p.Message = regexp.MustCompile(fmt.Sprintf(`load\[%d\]\.path on line \d+`, i)).ReplaceAllLiteralString(p.Message, plain.Line(out["path"]))
	}
	advice := p.Message + "; " + strings.NewReplacer(
		"allow plain HTTP with source.allow_http: true", "give --allow-http",
		"write api_key: ", "give ", "or api_key: ", "or ", "a key that has been in a file", "a key that was typed here",
	).Replace(p.Remedy)
	if variable, ok := strings.CutPrefix(s.value(q.Flag), "${env:"); ok && regexp.MustCompile(` is (not set|empty)$`).MatchString(p.Message) {
		variable = strings.TrimSuffix(variable, "}")
		advice = p.Message + "; set it by `export " + variable + "=...` before formetl is called, or refer to a file: ${file:PATH}"
	}
	return advice
}

// parse reads a definition as a run does. With key, its reference must lead to a key; a
// command that prints it is not run, because that may take long.
func (s *Session) parse(text string, key bool) (*definition.Definition, error) {
	o := s.o.Load
	o.WithoutSecrets, o.Command = !key, nil
	return definition.Parse(s.value("output"), []byte(text), o)
}

// asAnswer turns the error of a definition into that of the answer which it is about.
func (s *Session) asAnswer(err error) error {
	wrong, ok := errors.AsType[*definition.Error](err)
	if !ok {
		return err
	}
	for _, q := range Questions() {
		for _, p := range wrong.Problems {
			if s.isAbout(p, q) {
				return exit.Usagef("--%s: %s", q.Flag, advice(s, q, p))
			}
		}
	}
	return err
}
