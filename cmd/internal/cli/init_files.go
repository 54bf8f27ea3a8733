package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/infer"
	"github.com/formetl/formetl/schemas/plain"
)

// The kinds of outputs that are asked for.
const (
	fileKind    = "file"
	datasetKind = "dataset"
	tableKind   = "table"
)

// editorSchema is the name of the JSON Schema beside a definition, which editors read.
const editorSchema = "definition.schema.json"

// initAnswers are what init makes a definition from.
type initAnswers struct {
	baseURL, account, key, zone string
	forms                       []string
	kind                        string // of the path that is proposed
	paths                       []string
	dsn, table                  string
	mode                        string

	// What follows is not asked.
	api, format, partition, names, file string
	allowHTTP                           bool
}

// proposed are the answers with what is proposed in place of those that are missing. An
// address, an account and forms may still be missing.
func (s *initSession) proposed() initAnswers {
	a := s.answers
	variable := func(name string) string { value, _ := s.p.lookup(name); return value }
	a.baseURL = cmp.Or(a.baseURL, variable("FORMETL_BASE_URL"))
	a.account = cmp.Or(a.account, variable("FORMETL_ACCOUNT"))
	a.key = cmp.Or(a.key, "${env:"+definition.KeyVariable+"}")
	a.zone = cmp.Or(a.zone, variable("FORMETL_TIMEZONE"), console.MachineZone())
	if len(a.forms) == 0 && len(s.listed) == 1 {
		a.forms = []string{s.listed[0].Directory}
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
	if definition.CheckLocal(name) != nil { // such as ~x, which is no name of a file to type
		name = ""
	}
	a.file = cmp.Or(a.file, cmp.Or(name, a.account, "definition")+".yaml")
	return a
}

func isDataset(path string) bool { return strings.HasSuffix(path, "/") }

// writesTable tells whether an output is a table of a database.
func (a *initAnswers) writesTable() bool { return a.kind == tableKind || a.dsn != "" || a.table != "" }

// onlyGrowing tells whether no output is a file, so that runs can add to them.
func (a *initAnswers) onlyGrowing() bool {
	return !slices.ContainsFunc(a.paths, func(path string) bool { return !isDataset(path) })
}

// onlyForm is the form if there is but one, "" if there are several or globs.
func (a *initAnswers) onlyForm() string {
	if len(a.forms) == 1 && !definition.IsGlob(a.forms[0]) {
		return a.forms[0]
	}
	return ""
}

// pipeline is the pipeline's name, which is that of the file.
func (a *initAnswers) pipeline() string {
	base := filepath.Base(a.file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// schemaFile is the schema file, "" where none is written because forms have columns of
// their own.
func (a *initAnswers) schemaFile() string {
	if a.onlyForm() == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(a.file), a.pipeline()+".schema.yaml")
}

// definition is the definition's text. schema is the name of its schema file, "" for none.
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
	add("name: "+definition.Scalar(a.pipeline()), "stands in manifests and in the state folder: keep it")
	add("source:", "")
	add("  base_url: "+definition.Scalar(a.baseURL), "")
	if a.api != "" {
		add("  api: "+a.api, "the generation of the service")
	}
	add("  account: "+definition.Scalar(a.account), "")
	add("  api_key: "+definition.Scalar(a.key), "where the key is, never the key itself")
	add("  timezone: "+definition.Scalar(a.zone), "the account's zone: dates are its wall clock")
	if a.allowHTTP {
		add("  allow_http: true", "the key travels unprotected")
	}
	add("  # requests: {per_minute: 50}", "a budget for all runs of the account")
	forms := make([]string, len(a.forms))
	for i, form := range a.forms {
		forms[i] = definition.Scalar(strings.ReplaceAll(form, "${", "$${")) // a name is no reference
	}
	add("forms: ["+strings.Join(forms, ", ")+"]", "")
	add("names: "+definition.Scalar(a.names), "how columns are called that no schema names: label or id")
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
		add("    table: "+definition.Scalar(a.table), "made by the first run; its schema must be there")
		if a.partition != "" {
			add("    partition: "+definition.Scalar(a.partition), "how much a run reads again at least")
		}
	}
	return b.String()
}

func (a *initAnswers) addOutput(add func(line, comment string), path string) {
	format, about := a.format, "one file for each form, replaced whole"
	if isDataset(path) {
		format, about = cmp.Or(format, "parquet"), "ends with a slash: a dataset of parts"
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

// write makes all files, and then writes them, each in one step and the definition last.
func (s *initSession) write(ctx context.Context) error {
	type made struct {
		path, about string
		data        []byte
	}
	var files []made
	a, schema := &s.answers, ""
	if path := a.schemaFile(); path != "" {
		data, about, err := s.inferSchema(ctx)
		if err != nil {
			return err
		}
		schema = filepath.Base(path)
		files = append(files, made{path, about, data})
	}
	editors := filepath.Join(filepath.Dir(a.file), editorSchema)
	if _, err := os.Lstat(editors); err != nil {
		files = append(files, made{editors, "completes keys in editors", pipelines.DefinitionSchema})
	}
	files = append(files, made{a.file, "the definition", []byte(a.definition(schema))})
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
	s.tell("\nWritten:\n" + strings.TrimRight(console.Columns("  ", rows), "\n"))
	return nil
}

// inferSchema makes the form's schema file, and says what it holds.
func (s *initSession) inferSchema(ctx context.Context) (data []byte, about string, err error) {
	def, err := s.source()
	if err != nil {
		return nil, "", err
	}
	form := s.answers.onlyForm()
	s.tell("Looking at a sample of " + plain.Line(form) + " ...")
	inferred, err := infer.Schema(ctx, def, s.options, form, infer.Options{Personal: true})
	if err != nil {
		return nil, "", err
	}
	data, err = definition.FormatSchema(inferred.Schema, inferred.Notes)
	about = console.Plural(len(inferred.Schema.Columns), "column") + ", from " + console.Plural(inferred.Sampled.Results, "result")
	return data, about, err
}
