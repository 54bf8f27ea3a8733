package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas/plain"
)

// initPatience bounds how long init tries a request, because a person waits for the answer.
const initPatience = 10 * time.Second

func initCommand(p *process) *cobra.Command { return (&initSession{p: p}).command() }

// command returns the command init. Its flags are answers of the session.
func (s *initSession) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a first definition, by questions or flags",
		Long: `Init asks for what a definition needs, tries the answers at the service, and writes the
definition; for one form also a schema file, from a sample of the results.

A flag answers its question. Without a terminal, and with --no-input, init asks
nothing and takes defaults; then give --base-url, --account and --form. It never asks
for the API key itself, only where the key is, and writes the key nowhere.`,
		Example: `  formetl init
  formetl init --base-url https://fs1.example.com --account acme --form form1 --no-input
  formetl init --form form1 --path 's3://bucket/lake/{form}/' -o form1.yaml
  formetl init --form '*' --path 'out/{form}.csv' --path 'lake/{form}/' --partition day
  formetl init --form form1 --dsn '${env:PG}' --table 'forms.{form}'`,
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.in == nil && !s.noInput && console.IsTerminal(s.p.stdin) && console.IsTerminal(s.p.stderr) && !s.p.log.JSON() {
				s.in = bufio.NewReader(s.p.stdin)
			}
			return s.run(cmd.Context())
		},
	}
	set, a := cmd.Flags(), &s.answers
	set.StringVar(&a.baseURL, "base-url", "", "address of the service (or FORMETL_BASE_URL)")
	set.StringVar(&a.api, "api", "", "which API of the service to ask: v1, v2, or auto: v2 if the service has it (or FORMETL_API; default auto)")
	set.StringVar(&a.account, "account", "", "name of the account, as in the addresses of its forms (or FORMETL_ACCOUNT)")
	set.StringVar(&a.key, "api-key-reference", "", "where the API key is, never the key itself: '${env:NAME}', '${file:PATH}' or '${cmd:COMMAND LINE}' (default: '${env:"+definition.KeyVariable+"}')")
	set.StringVar(&s.keyFile, "api-key-file", "", "file that holds the API key: short for --api-key-reference '${file:PATH}'")
	set.BoolVar(&a.allowHTTP, "allow-http", false, "also allow http:// to other machines, which sends the key unencrypted")
	set.StringVar(&a.zone, "timezone", "", "time zone of the account, such as America/Chicago (or FORMETL_TIMEZONE; default: this machine's)")
	set.StringArrayVar(&a.forms, "form", nil, "name of a form, or a pattern such as 'survey*', or '*' for all forms; repeatable")
	set.StringArrayVar(&a.paths, "path", nil, "where to write: a path from the definition's folder, or s3://bucket/path; one that ends with a slash is a dataset; {form} stands for the form's name; repeatable (default: out/{form}.csv; lake/{form}/ with --mode incremental or --partition; none with --table)")
	set.StringVar(&a.format, "format", "", "format of the outputs (default: by a file's name; parquet for a dataset)")
	set.StringVar(&a.partition, "partition", "", "folders of a dataset: none, day, month or year (default month)")
	set.StringVar(&a.table, "table", "", "table of a PostgreSQL database to write, such as forms.{form}")
	set.StringVar(&a.dsn, "dsn", "", "how to reach the database of --table: a reference such as '${env:PG}' (the default), or the connection string itself if it holds no password")
	set.StringVar(&a.mode, "mode", "", "what each run reads: full (everything), or incremental (what is new or changed; the default if all outputs are datasets or tables, and only then possible)")
	console.RegisterNames(set, &a.names, "")
	set.StringVarP(&a.file, "output", "o", "", "definition to write (default: named after the form or the account)")
	set.BoolVar(&s.force, "force", false, "replace the definition and the schema file if they exist, with all that you edited in them; outputs stay")
	set.BoolVar(&s.noInput, "no-input", false, "ask nothing")
	return cmd
}

// initSession is a definition that init is making from answers.
type initSession struct {
	p              *process
	answers        initAnswers // the answers that are known so far
	keyFile        string
	noInput, force bool

	in      *bufio.Reader // where answers are typed; nil: no person can be asked
	checks  definition.LoadOptions
	options pipelines.Options
	key     transport.Secret
	pasted  string // the form whose address was typed
	listed  []extract.Form
	known   []string // the directories of listed
}

// run asks for the missing answers, tries them at the service, and writes the files.
func (s *initSession) run(ctx context.Context) error {
	var err error
	if s.options, err = s.p.start(slog.LevelWarn, new(console.RangeFlags).Options); err != nil {
		return err
	}
	s.checks = console.Checks(ctx, s.p.lookup)
	if err := s.begin(); err != nil {
		return err
	}
	if err := s.ask(ctx); err != nil {
		return err
	}
	if err := s.write(ctx); err != nil {
		return err
	}
	file := definition.ShellWord(s.answers.file)
	s.tell("\nNext:\n" + strings.TrimRight(console.Columns("  ", [][]string{
		{callable() + " doctor " + file, "checks the key, the forms and the outputs"},
		{callable() + " plan " + file, "shows what a run would read"},
		{callable() + " run " + file, "reads the results and writes them"},
	}), "\n"))
	if strings.HasPrefix(s.answers.key, "${env:") {
		s.tell("cron does not have your shell's variables: for cron, write api_key: ${file:key} in " + file + ", and the API key into a file named key beside it.")
	}
	return nil
}

func (s *initSession) tell(text string) { s.p.log.Tell(slog.LevelInfo, text) }

// begin checks the answers that flags and the environment give, before any question is asked.
func (s *initSession) begin() error {
	a := &s.answers
	api, err := console.ParseAPI(a.api, s.p.lookup)
	if err != nil {
		return console.Usagef("%w", err)
	}
	a.api = string(api)
	switch {
	case a.file != "" && !isDefinition(a.file):
		return console.Usagef("--output: the name of a definition has to end with .yaml, such as form1.yaml")
	case s.keyFile != "" && a.key != "":
		return console.Usagef("--api-key-file and --api-key-reference both say where the key is: give one of them")
	case s.keyFile != "":
		if a.key, err = fileReference(s.keyFile, filepath.Dir(a.file)); err != nil {
			return err
		}
	}
	if m := formAddress.FindStringSubmatch(a.baseURL); m != nil && slices.Contains([]string{"", m[2]}, s.proposed().account) {
		s.splitAddress() // with another account the path is the service's own
	}
	if s.in == nil {
		if s.pasted != "" && len(a.forms) == 0 {
			a.forms = []string{s.pasted}
		}
		if zone, _ := s.p.lookup("FORMETL_TIMEZONE"); cmp.Or(a.zone, zone) == "" {
			s.p.log.Tell(slog.LevelWarn, fmt.Sprintf(machinesZone, console.MachineZone())+", or correct timezone: in the definition")
		}
		if *a = s.proposed(); a.baseURL == "" || a.account == "" || len(a.forms) == 0 {
			return console.Usagef("init asks nothing without a terminal or with --no-input: give all of --base-url, --account and --form, or a form's link alone: --base-url https://fs1.example.com/acme/form1/")
		}
	}
	if err := s.check(); err != nil {
		return err
	}
	if a.file != "" || len(a.forms) > 0 {
		return s.checkFiles()
	}
	return nil
}

// fileReference returns the path of a file relative to the definition's folder, for a reference.
func fileReference(file, folder string) (string, error) {
	there, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", err
	}
	if relative, err := filepath.Rel(folder, there); err == nil && !filepath.IsAbs(file) {
		there = relative
	}
	return "${file:" + filepath.ToSlash(there) + "}", nil
}

// initQuestion asks for one answer, or for several that are separated by commas.
type initQuestion struct {
	help    string // how to choose an answer, on lines before the question; "" for nothing
	text    string
	one     func(*initAnswers) *string
	many    func(*initAnswers) *[]string
	choices []string     // the answers to choose from; nil: any
	check   func() error // a check besides the rules of definitions; nil for none
}

// The texts of init's questions that say how to choose an answer.
const (
	serviceHelp = `The address and the account are those of your forms. A form at
https://fs1.example.com/acme/form1/ has the address https://fs1.example.com
and the account acme.`
	keyHelp = `The API key itself is never asked for, only where it is: ${env:NAME} is a
variable of the environment, ${file:PATH} a file that holds only the key.`
	kindHelp = `What do you want to write?
  file     one file for each form, which each run replaces: for a spreadsheet
  dataset  a folder of many files, to which each run adds: for DuckDB or Spark
  table    a table of a PostgreSQL database`
	pathHelp = `A file's extension names its format: .csv, .xlsx (Excel), .parquet (pandas, R).
The path of a dataset, which is Parquet, ends with a slash. {form} stands for the form's name.`
	dsnHelp = `The connection string is like postgres://formetl:…@db.example.com/warehouse. Like
the key it is never asked for, only where it is.`
	modeHelp = `What does each run read?
  incremental  what is new or changed since the last run: few requests, for a schedule
  full         every result, each time`
)

// ask asks for the answers that no flag gave.
func (s *initSession) ask(ctx context.Context) error {
	a := &s.answers
	service := []initQuestion{
		{help: serviceHelp, text: "Address of the service", one: func(a *initAnswers) *string { return &a.baseURL }, check: func() error { s.splitAddress(); return nil }},
		{text: "Account", one: func(a *initAnswers) *string { return &a.account }},
		{help: keyHelp, text: "Where the API key is", one: func(a *initAnswers) *string { return &a.key }, check: s.checkKey},
	}
	const zoneHelp = "The account's time zone is the one in which the service shows you times."
	zone := []initQuestion{{help: zoneHelp, text: "Time zone, such as America/Chicago", one: func(a *initAnswers) *string { return &a.zone }}}
	if s.in != nil {
		s.tell("Press Enter to take the answer in brackets, or Ctrl-C to end without writing anything.")
		if value, _ := s.p.lookup(definition.KeyVariable); value == "" && a.key == "" {
			s.tell(fmt.Sprintf("%[1]s is not set. If the key is in a file, go on: a question asks where it is.\nOtherwise press Ctrl-C, set it (export %[1]s=…), and run init again.", definition.KeyVariable))
		}
	}
	if err := s.askOpen(ctx, slices.Concat(service, zone)...); err != nil {
		return err
	}
	for {
		err := s.listForms(ctx)
		if err == nil {
			break
		}
		if s.in == nil || ctx.Err() != nil {
			return err
		}
		hint, _, _ := strings.Cut(console.Hint(err, "formetl init", ""), "; then run the same")
		s.tell(fmt.Sprintf("\n%v\n%s\n", err, hint))
		for _, q := range service {
			q.help = ""
			if err := s.put(ctx, q); err != nil {
				return err
			}
		}
	}
	if s.in != nil && len(a.forms) == 0 {
		s.tell("\n" + strings.TrimRight(console.Columns("  ", s.formRows()), "\n"))
	}
	forms := initQuestion{text: "Forms, by name or number, several with commas, or * for every form", many: func(a *initAnswers) *[]string { return &a.forms }, choices: s.known, check: s.checkForms}
	if err := s.askOpen(ctx, forms); err != nil {
		return err
	}
	if err := errors.Join(s.checkForms(), s.askFile(ctx)); err != nil {
		return err
	}
	kind := initQuestion{help: kindHelp, text: "file, dataset or table", one: func(a *initAnswers) *string { return &a.kind }, choices: []string{fileKind, datasetKind, tableKind}}
	if len(a.paths) == 0 && !a.writesTable() {
		if err := s.askOpen(ctx, kind); err != nil {
			return err
		}
	}
	places := []initQuestion{{help: pathHelp, text: "Path", many: func(a *initAnswers) *[]string { return &a.paths }}}
	if a.writesTable() {
		places = []initQuestion{
			{help: dsnHelp, text: "Where the connection string is", one: func(a *initAnswers) *string { return &a.dsn }},
			{help: "The first run makes the table. Its schema, before the dot, must exist.", text: "Table", one: func(a *initAnswers) *string { return &a.table }},
		}
	}
	if err := s.askOpen(ctx, places...); err != nil {
		return err
	}
	mode := initQuestion{help: modeHelp, text: "incremental or full", one: func(a *initAnswers) *string { return &a.mode }, choices: []string{"incremental", "full"}}
	if a.onlyGrowing() {
		if err := s.askOpen(ctx, mode); err != nil {
			return err
		}
	}
	*a = s.proposed()
	return s.check()
}

// askFile asks for another name of the definition as long as files of the name exist.
func (s *initSession) askFile(ctx context.Context) error {
	err := s.checkFiles()
	for ; err != nil && s.in != nil; err = s.checkFiles() {
		problem, _, _ := strings.Cut(err.Error(), "; choose another name with -o")
		another := ""
		take := func() error {
			if s.answers.file = another; !isDefinition(another) {
				s.answers.file += ".yaml"
			}
			return nil
		}
		q := initQuestion{help: problem, text: "Another name for the definition", one: func(*initAnswers) *string { return &another }, check: take}
		if err := s.put(ctx, q); err != nil {
			return err
		}
	}
	return err
}

// askOpen asks those of the questions that have no answer yet.
func (s *initSession) askOpen(ctx context.Context, questions ...initQuestion) error {
	for _, q := range questions {
		if q.answer(&s.answers) != "" {
			continue
		}
		if err := s.put(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// answer returns the answer to the question as a person would type it, "" if there is none.
func (q initQuestion) answer(a *initAnswers) string {
	if q.many != nil {
		return strings.Join(*q.many(a), ", ")
	}
	return *q.one(a)
}

// put asks a question until the answer is right. The other answers are kept. After a wrong answer
// Enter takes the choice that is near it, or else what it took before.
func (s *initSession) put(ctx context.Context, q initQuestion) error {
	if q.help != "" {
		s.tell("\n" + q.help)
	}
	kept := ""
	for {
		proposed := s.proposed()
		fallback, prompt := cmp.Or(kept, q.answer(&proposed)), q.text
		if fallback != "" {
			prompt += " [" + plain.Line(fallback) + "]"
		}
		fmt.Fprint(s.p.stderr, prompt+": ")
		line, err := console.ReadLine(ctx, s.in, s.p.stderr)
		switch {
		case errors.Is(err, io.EOF):
			return console.Usagef("standard input ended before the questions did, and nothing was written; answer them all, or give the flags and --no-input")
		case err != nil:
			return err
		}
		before, typed := s.answers, cmp.Or(strings.TrimSpace(line), fallback)
		if err := s.take(q, typed); err != nil {
			s.answers = before
			s.tell(unset.ReplaceAllString(flagOfProblem.ReplaceAllString(err.Error(), ""), "$1 is $2; press Ctrl-C, set it (export $1=…), and run init again, or answer another reference"))
			if kept = plain.Nearest(typed, q.choices); kept == typed {
				kept = ""
			}
			continue
		}
		return nil
	}
}

// flagOfProblem is the flag that begins what is wrong with an answer. Nobody has typed it.
var flagOfProblem = regexp.MustCompile(`^--[a-z-]+( \S+)?: `)

// unset is what is wrong with a variable, which cannot be set while init runs.
var unset = regexp.MustCompile(`(\w+) is (not set|empty); set it, or name another variable or file`)

// take records an answer if it is right; otherwise it returns what is wrong.
func (s *initSession) take(q initQuestion, typed string) error {
	if typed == "" {
		return errors.New("please type an answer")
	}
	switch {
	case q.many == nil && q.choices != nil && !slices.Contains(q.choices, typed):
		return fmt.Errorf("%q: give one of %s", typed, strings.Join(q.choices, ", "))
	case q.many == nil:
		*q.one(&s.answers) = typed
	default:
		var words []string
		for word := range strings.SplitSeq(typed, ",") {
			words = append(words, strings.TrimSpace(word))
		}
		*q.many(&s.answers) = words
	}
	if q.check != nil {
		if err := q.check(); err != nil {
			return err
		}
	}
	return s.check()
}

// formAddress is the address of a form: the service, the account and the form.
var formAddress = regexp.MustCompile(`^(https?://[^/?#@]+)/([^/?#]+)/([^/?#]+)(/index)?/*$`)

// splitAddress takes service and account from the address of a form, because people paste that.
func (s *initSession) splitAddress() {
	a := &s.answers
	if m := formAddress.FindStringSubmatch(a.baseURL); m != nil && m[2] != "api" && m[3] != "api" {
		a.baseURL, a.account, s.pasted = m[1], m[2], m[3]
		s.tell(fmt.Sprintf("This is the address of form %s: the service is %s, the account %s.", m[3], m[1], m[2]))
	}
}

// likeReference is a reference, or one with wrong brackets.
var likeReference = regexp.MustCompile(`^[$({]*((env|file|cmd):[^{}]+?)[)}]*$`)

// checkKey refuses what is no reference to the key. Only a reference is shown.
func (s *initSession) checkKey() error {
	hint := ""
	if m := likeReference.FindStringSubmatch(s.answers.key); m != nil {
		meant := "${" + m[1] + "}"
		if meant == s.answers.key {
			return nil
		}
		hint = "; did you mean " + meant + "?"
	}
	return errors.New("answer ${env:NAME} or ${file:PATH}, never the key itself" + hint)
}

// check reads the definition that the answers give so far, as a run reads it. So a run accepts
// every answer that is accepted here.
func (s *initSession) check() error {
	o := s.checks
	o.WithoutSecrets = s.answers.key == "" // the API key is still to be asked for
	o.Command = nil                        // a command that prints the API key may take long
	_, err := s.parse(o)
	if a := s.answers; err == nil && (a.partition != "" || a.kind == datasetKind) && len(a.paths) > 0 && !a.writesTable() && !slices.ContainsFunc(a.paths, isDataset) {
		err = console.Usagef("--partition: the paths name single files, and a dataset is a folder; end a path with a slash, such as lake/{form}/")
	}
	return err
}

// parse reads the definition that the answers give. An answer that is wrong is an error of usage.
func (s *initSession) parse(o definition.LoadOptions) (*definition.Definition, error) {
	a := s.proposed()
	a.baseURL, a.account = cmp.Or(a.baseURL, "https://fs1.example.com"), cmp.Or(a.account, "acme")
	if a.writesTable() && s.answers.dsn == "" { // the database's address is still to be asked for
		a.dsn = "postgres://db.example.com/warehouse"
	}
	if len(a.forms) == 0 {
		a.forms = []string{"form"}
	}
	def, err := definition.Parse(a.file, []byte(a.definition("")), o)
	if wrong, ok := errors.AsType[*definition.Error](err); ok && len(wrong.Problems) > 0 {
		p := wrong.Problems[0]
		p.Line, p.Key = 0, s.flag(p.Key) // no file is written yet, so lines and keys would mislead
		p.Message = asFlags.Replace(regexp.MustCompile(` on line \d+`).ReplaceAllString(p.Message, ""))
		p.Remedy = asFlags.Replace(p.Remedy)
		return nil, console.Usagef("%s", p)
	}
	return def, err
}

// asFlags replaces keys in what is wrong with an answer by flags.
var asFlags = strings.NewReplacer("set allow_http: true", "start init with --allow-http", "api_key: ${env:NAME}", "--api-key-reference '${env:NAME}'", "api_key: ${file:PATH}", "--api-key-reference '${file:PATH}'", "mode: ", "--mode ", ", and format: beside it", "",
	"names: ", "--names ", "dsn: ", "--dsn ", "add format:", "start init with --format", "be in a definition", "be given", "load[0].path", "another --path", "; if a codebook is in the way, write codebook: false", "")

// flag returns the flag that gives what stands under a key of the definition; of several paths the
// path too.
func (s *initSession) flag(key string) string {
	n, a := 0, s.proposed()
	if _, err := fmt.Sscanf(key, "load[%d].path", &n); err == nil && n < len(a.paths) {
		return "--path " + plain.Line(a.paths[n])
	}
	name, _, _ := strings.Cut(key[strings.LastIndex(key, ".")+1:], "[")
	if name == "api_key" && s.keyFile != "" {
		return "--api-key-file"
	}
	if name == "api_key" && a.key == "${env:"+definition.KeyVariable+"}" {
		return "the API key"
	}
	others := map[string]string{"api_key": "api-key-reference", "name": "output", "forms": "form"}
	return "--" + cmp.Or(others[name], strings.ReplaceAll(name, "_", "-"))
}

// source returns the definition with the API key, for requests to the service.
func (s *initSession) source() (*definition.Definition, error) {
	o := s.checks
	o.Key = s.key
	def, err := s.parse(o)
	if err != nil {
		return nil, err
	}
	s.key = def.Source.Key
	s.p.log.HideKey(s.key)
	r := &def.Source.Requests
	r.Patience, r.PerMinute, r.PerDay, r.OwnBudgets = initPatience, 0, 0, true // budgets would leave a state folder
	return def, nil
}

// listForms asks the service for the account's forms, which tests address, account and API key.
func (s *initSession) listForms(ctx context.Context) error {
	s.key = transport.Secret{}
	def, err := s.source()
	if err != nil {
		return err
	}
	if s.answers.api == "" {
		def.Source.SetAPI(definition.APIAuto)
	}
	defer s.p.log.Quiet()
	client, err := pipelines.NewClient(ctx, def, s.options)
	if err != nil {
		return err
	}
	defer client.Close()
	if s.listed, err = client.Forms(ctx); err != nil {
		return err
	}
	s.known = nil
	for _, f := range s.listed {
		s.known = append(s.known, f.Directory)
	}
	s.answers.api = cmp.Or(s.answers.api, client.Generation())
	s.tell(fmt.Sprintf("formetl asks the service by API %s. The account has %s.", client.Generation(), plain.Plural(len(s.listed), "form")))
	return nil
}

// formRows returns rows with the account's forms, numbered.
func (s *initSession) formRows() [][]string {
	n := 0
	return console.Rows(nil, s.listed, func(f extract.Form) []string {
		n++
		return []string{strconv.Itoa(n), plain.Line(f.Directory), plain.Cut(plain.Line(f.Name), 50)}
	})
}

// checkForms replaces numbers of listed forms by the forms' directories, and refuses forms that the
// account does not have.
func (s *initSession) checkForms() error {
	for i, form := range s.answers.forms {
		if n, err := strconv.Atoi(form); err == nil && 0 < n && n <= len(s.known) && !slices.Contains(s.known, form) && s.in != nil {
			s.answers.forms[i] = s.known[n-1]
			continue
		}
		if def := (definition.Definition{Forms: []string{form}}); slices.ContainsFunc(s.known, def.WantsForm) {
			continue
		}
		a, given := s.proposed(), (&console.DefinitionFlags{KeyFile: s.keyFile}).Given()
		asked := definition.Definition{Source: definition.Source{BaseURL: a.baseURL, Account: a.account}, Given: given}
		return &definition.Fault{
			Code: console.ExitNoInput, Text: fmt.Sprintf("the account has no form %s%s", plain.Line(form), plain.Line(plain.Hint(form, s.known))),
			Cure: "check the form's name; `" + asked.Command("forms") + "` lists the forms of the account",
		}
	}
	return nil
}

// checkFiles refuses to replace files that exist, and refuses folders that do not exist.
func (s *initSession) checkFiles() error {
	a := s.proposed()
	return cmp.Or(mayWrite(a.file, s.force), mayWrite(a.schemaFile(), s.force))
}

// The kinds of outputs that init asks for.
const (
	fileKind    = "file"
	datasetKind = "dataset"
	tableKind   = "table"
)

// editorSchema is the file name of the JSON Schema beside a definition, which editors read.
const editorSchema = "formetl.editor.json"

// initAnswers are the answers from which init makes a definition.
type initAnswers struct {
	baseURL, account, key, zone string
	forms                       []string
	kind                        string // the kind of the output that init proposes
	paths                       []string
	dsn, table                  string
	mode                        string

	// init does not ask for the following; flags give them.
	api, format, partition, names, file string
	allowHTTP                           bool
}

// proposed returns the answers, with init's proposals where answers are missing. Address, account
// and forms may still be missing, because init has no proposal for them.
func (s *initSession) proposed() initAnswers {
	a := s.answers
	variable := func(name string) string { value, _ := s.p.lookup(name); return value }
	a.baseURL = cmp.Or(a.baseURL, variable("FORMETL_BASE_URL"))
	a.account = cmp.Or(a.account, variable("FORMETL_ACCOUNT"))
	a.key = cmp.Or(a.key, "${env:"+definition.KeyVariable+"}")
	a.zone = cmp.Or(a.zone, variable("FORMETL_TIMEZONE"), console.MachineZone())
	if len(a.forms) == 0 && len(s.listed) == 1 {
		a.forms = []string{s.listed[0].Directory}
	} else if len(a.forms) == 0 && slices.Contains(s.known, s.pasted) {
		a.forms = []string{s.pasted}
	}
	if a.kind == "" && (a.mode == "incremental" || a.partition != "") { // then it cannot be a file
		a.kind = datasetKind
	}
	a.kind = cmp.Or(a.kind, fileKind)
	switch {
	case a.writesTable():
		a.dsn, a.table = cmp.Or(a.dsn, "${env:PG}"), cmp.Or(a.table, "public.{form}")
	case len(a.paths) > 0:
	case a.kind == datasetKind:
		a.paths = []string{"lake/{form}/"}
	default:
		a.paths = []string{"out/{form}." + cmp.Or(a.format, "csv")}
	}
	a.mode = cmp.Or(a.mode, "full")
	if s.answers.mode == "" && a.onlyGrowing() {
		a.mode = "incremental"
	}
	name := a.onlyForm()
	if definition.CheckLocal(name) != nil { // such as ~x, which cannot be typed as a file's name
		name = ""
	}
	a.file = cmp.Or(a.file, cmp.Or(name, a.account, "definition")+".yaml")
	return a
}

func isDataset(path string) bool { return strings.HasSuffix(path, "/") }

// writesTable tells whether an output is a table of a database.
func (a *initAnswers) writesTable() bool { return a.kind == tableKind || a.dsn != "" || a.table != "" }

// onlyGrowing tells whether no output is a single file, so that runs can add to all outputs.
func (a *initAnswers) onlyGrowing() bool {
	return !slices.ContainsFunc(a.paths, func(path string) bool { return !isDataset(path) })
}

// onlyForm returns the form if there is exactly one, "" if there are several or globs.
func (a *initAnswers) onlyForm() string {
	if len(a.forms) == 1 && !definition.IsGlob(a.forms[0]) {
		return a.forms[0]
	}
	return ""
}

// pipeline returns the pipeline's name: the name of the definition's file without its extension.
func (a *initAnswers) pipeline() string {
	base := filepath.Base(a.file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// schemaFile returns the name of the schema file, "" where none is written because there may be
// several forms, each with its own columns.
func (a *initAnswers) schemaFile() string {
	if a.onlyForm() == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(a.file), a.pipeline()+".columns.yaml")
}

// definition returns the text of the definition. schema is the name of its schema file, "" for none.
func (a *initAnswers) definition(schema string) string {
	var b strings.Builder
	add := func(line, comment string) {
		if comment != "" {
			line = fmt.Sprintf("%-39s # %s", line, comment)
		}
		b.WriteString(line + "\n")
	}
	fmt.Fprintf(&b, "# yaml-language-server: $schema=./%s\n", editorSchema)
	fmt.Fprintf(&b, "# formetl init wrote this; it is yours to edit. `formetl help definitions` tells of every key.\n")
	add("version: 1", "")
	add("name: "+definition.Scalar(a.pipeline()), "runs find by it what earlier runs left: keep it")
	add("source:", "")
	add("  base_url: "+definition.Scalar(a.baseURL), "")
	if a.api != "" {
		add("  api: "+a.api, "which API of the service to ask: v1, v2 or auto")
	}
	add("  account: "+definition.Scalar(a.account), "")
	add("  api_key: "+definition.Scalar(a.key), "where the key is, never the key itself")
	add("  timezone: "+definition.Scalar(a.zone), "the account's time zone: dates are by its clocks")
	if a.allowHTTP {
		add("  allow_http: true", "the key is sent unencrypted: use https if the service has it")
	}
	add("  # requests: {per_minute: 50}", "a budget for all runs of the account")
	forms := make([]string, len(a.forms))
	for i, form := range a.forms {
		forms[i] = definition.Scalar(strings.ReplaceAll(form, "${", "$${")) // a ${ in a form's name begins no reference
	}
	add("forms: ["+strings.Join(forms, ", ")+"]", "")
	add("names: "+definition.Scalar(a.names), "how columns are called unless the schema says: label, heading or id")
	if schema != "" {
		add("schema: "+definition.Scalar(schema), "the columns with their types and rules")
	}
	add("extract:", "")
	add("  mode: "+definition.Scalar(a.mode), "full reads everything, incremental what is new or changed")
	add("  # from: 2026-01-01", "the first day; without it, everything is read")
	add("load:", "several outputs are written from one reading")
	for _, path := range a.paths {
		a.addOutput(add, path)
	}
	if a.writesTable() {
		add("  - database: postgres", "`formetl help databases` tells of its keys")
		add("    dsn: "+definition.Scalar(a.dsn), "where the connection string is, never a password")
		add("    table: "+definition.Scalar(a.table), "the first run makes it; the schema before the dot must exist")
		if a.partition != "" {
			add("    partition: "+definition.Scalar(a.partition), "the smallest span of time that a run reads again")
		}
	}
	return b.String()
}

func (a *initAnswers) addOutput(add func(line, comment string), path string) {
	format, about := a.format, "one file for each form; each run replaces it"
	if isDataset(path) {
		format, about = cmp.Or(format, "parquet"), "ends with a slash: a dataset, a folder of many files"
	}
	add("  - path: "+definition.Scalar(path), about)
	if format != "" {
		add("    format: "+definition.Scalar(format), "")
	}
	if isDataset(path) {
		add("    partition: "+definition.Scalar(cmp.Or(a.partition, string(definition.PartitionMonth))), "folders of the dataset: none, day, month or year")
	}
	if definition.OnS3(path) {
		add("    # s3: {region: us-east-1, endpoint: \"https://s3.example.com\", path_style: true}", "for a server other than AWS")
	}
}

// write makes the contents of all files, and then writes each in one step, the definition last.
func (s *initSession) write(ctx context.Context) error {
	type made struct {
		path, about string
		data        []byte
	}
	var files []made
	a, schema := &s.answers, ""
	editors := filepath.Join(filepath.Dir(a.file), editorSchema)
	if _, err := os.Lstat(editors); err != nil {
		files = append(files, made{editors, "helps editors to propose a definition's settings; you need not open it", pipelines.DefinitionSchema})
	}
	if path := a.schemaFile(); path != "" {
		data, about, err := s.inferSchema(ctx)
		if err != nil {
			return err
		}
		schema = filepath.Base(path)
		files = append(files, made{path, about, data})
	}
	files = append(files, made{a.file, "the definition: what is read, and where it is written", []byte(a.definition(schema))})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var rows [][]string
	for _, f := range files {
		if err := writeFile(f.path, f.data, 0o640); err != nil {
			return err
		}
		rows = append(rows, []string{f.path, f.about})
	}
	slices.Reverse(rows)
	s.tell("\nWritten:\n" + strings.TrimRight(console.Columns("  ", rows), "\n"))
	return nil
}

// inferSchema makes the form's schema file, and a text that says what the file holds.
func (s *initSession) inferSchema(ctx context.Context) (data []byte, about string, err error) {
	def, err := s.source()
	if err != nil {
		return nil, "", err
	}
	form := s.answers.onlyForm()
	s.tell("Looking at a sample of " + plain.Line(form) + " ...")
	inferred, err := upkeep.InferSchema(ctx, def, s.options, form, upkeep.InferOptions{Personal: true})
	if err != nil {
		return nil, "", err
	}
	data, err = definition.FormatSchema(inferred.Schema, inferred.Notes)
	about = "its columns, with names and types: " + plain.Plural(len(inferred.Schema.Columns), "column") + ", from " + plain.Plural(inferred.Sampled.Results, "result")
	return data, about, err
}
