package wizard

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// kind says how a question is answered.
type kind int

const (
	text    kind = iota
	choice       // one of a few words
	several      // any number of words
	yesNo
)

// Question is something that a definition has to know. Its flag is also its name.
type Question struct {
	Flag  string
	Short string // one letter, "" for none
	Title string // as it is asked
	Help  string // of the flag, and below the title
	kind  kind
	// keys are those of the definition that the answer gives. Problems with them are
	// problems with the answer. load[] is the output in the making.
	keys []string
	// optional tells that nothing is an answer too.
	optional bool
	// when tells whether the question arises, by what is known; nil: always.
	when func(*Session) bool
	// propose is the answer where nobody gives one, "" for none.
	propose func(*Session) string
	choices func(*Session) []Choice
	// note explains the question instead of Help, given an answer. It uses nothing of the
	// session that changes while questions are asked.
	note func(s *Session, answer string) string
	// check says what is wrong besides the definition's rules, "" for nothing.
	check func(*Session) string
}

// Choice is a word that answers a question, and how it is shown.
type Choice struct{ Word, Label string }

// always is a proposal that depends on nothing.
func always(answer string) func(*Session) string { return func(*Session) string { return answer } }

// these are choices that depend on nothing.
func these(choices ...Choice) func(*Session) []Choice {
	return func(*Session) []Choice { return choices }
}

// Questions are all questions in the order in which they are asked.
func Questions() []Question {
	return append(serviceQuestions(), append(outputQuestions(), fileQuestions()...)...)
}

func serviceQuestions() []Question {
	return []Question{
		{
			Flag: "base-url", Title: "Service", Help: "address of the service, such as https://fs1.example.com (or FORMETL_BASE_URL)",
			keys: []string{"source.base_url"}, propose: variable("FORMETL_BASE_URL"),
		},
		{
			Flag: "account", Title: "Account", Help: "the account's URL extension: the first part of the form's own address (or FORMETL_ACCOUNT)",
			keys: []string{"source.account"}, propose: variable("FORMETL_ACCOUNT"),
		},
		{
			Flag: "api-key-reference", Title: "API key", Help: "where the API key is, never the key itself: ${env:NAME}, ${file:PATH} or ${cmd:COMMAND LINE}",
			keys: []string{"source.api_key"}, propose: always("${env:" + definition.KeyVariable + "}"),
		},
		{
			Flag: "form", Title: "Forms", Help: "a form's directory or a glob, * for all forms; repeatable",
			kind: several, keys: []string{"forms"}, propose: onlyForm, choices: formChoices, check: formProblem,
		},
		{
			Flag: "timezone", Title: "Time zone of the account", Help: "the account's zone, an IANA name (or FORMETL_TIMEZONE; default: this machine's)",
			keys: []string{"source.timezone"}, propose: likelyZone, note: clocks, check: zoneProblem,
		},
	}
}

// outputQuestions are those that are asked for each output. Their flags are repeatable.
func outputQuestions() []Question {
	return []Question{
		{
			Flag: "kind", Title: "What to write", Help: "file (written anew by each run), or dataset (parts that runs add to)", kind: choice,
			when: func(s *Session) bool { return !s.answered("path") }, propose: likelyKind, check: kindProblem,
			choices: these(Choice{file, "one file for each form, which each run writes anew"}, Choice{dataset, "a dataset for each form: parts that runs add to"}),
		},
		{
			Flag: "format", Title: "Format", Help: "csv, tsv, ndjson, json, parquet, arrow or xlsx (default: csv for a file, parquet for a dataset)", kind: choice,
			keys: []string{"load[].format"}, when: formatOpen, propose: likelyFormat, choices: formatChoices,
		},
		{
			Flag: "path", Title: "Path", Help: "where to write: a local path beside the definition, or s3://bucket/path; a dataset's ends with a slash; {form} is replaced",
			keys: []string{"load[].path"}, propose: likelyPath, check: pathProblem,
		},
		{
			Flag: "partition", Title: "Folders of the dataset", Help: "folders of a dataset: none, day, month or year", kind: choice,
			keys: []string{"load[].partition"}, when: isDataset, propose: always(string(definition.PartitionMonth)),
			choices: these(
				Choice{string(definition.PartitionMonth), "one for each month"}, Choice{string(definition.PartitionDay), "one for each day, for many results"},
				Choice{string(definition.PartitionYear), "one for each year"}, Choice{string(definition.PartitionNone), "none"},
			),
		},
		{
			Flag: "s3-endpoint", Title: "S3 server", Help: "URL of an S3 server other than AWS", optional: true,
			keys: []string{"load[].s3.endpoint"}, when: isRemote, check: remoteProblem,
		},
		{
			Flag: "s3-region", Title: "S3 region", Help: "the bucket's region (default: AWS_REGION, or the profile's)", optional: true,
			keys: []string{"load[].s3.region"}, when: isRemote, check: remoteProblem,
		},
	}
}

func fileQuestions() []Question {
	return []Question{
		{
			Flag: "another-output", Title: "Another output?", Help: "add one more output than the other flags give (default: asked if no --path is given)", kind: yesNo,
			propose: always(no),
		},
		{
			Flag: "mode", Title: "What each run reads", Help: "what each run reads: incremental (what is new or changed, into datasets only) or full (everything)", kind: choice,
			keys: []string{"extract.mode"}, when: onlyDatasets, propose: always(incremental),
			choices: these(Choice{incremental, "what is new, and what changed"}, Choice{full, "everything"}),
		},
		{
			Flag: "names", Title: "Names of the columns", Help: "columns are named by label or id", kind: choice,
			keys: []string{"names"}, propose: always("label"),
			choices: these(Choice{"label", "by the form's questions, such as full_name"}, Choice{"id", "by the ids of items, such as item_12"}),
		},
		{
			Flag: "schema", Title: "Types of the columns", Help: "infer (a schema file from a sample of one form's results) or none (each run infers texts)", kind: choice,
			when: func(s *Session) bool { return singleForm(s) != "" }, propose: likelySchema, check: schemaProblem,
			choices: these(Choice{inferred, "a schema file from a sample of the results, for you to edit"}, Choice{none, "no schema file: texts and times"}),
		},
		{
			Flag: "output", Short: "o", Title: "File of the definition", Help: "definition to write (default: named after the form or the account)",
			keys: []string{"name"}, propose: likelyFile, check: fileProblem,
		},
		{
			Flag: "run", Title: "Run it now?", Help: "run the definition at once", kind: yesNo,
			propose: func(s *Session) string {
				if s.o.Ask != nil {
					return yes
				}
				return no
			},
		},
	}
}

// Words that answer questions.
const (
	file        = "file"
	dataset     = "dataset"
	incremental = "incremental"
	full        = "full"
	inferred    = "infer"
	none        = "none"
	yes         = "true"
	no          = "false"
)

// question is the one with this flag.
func question(flag string) Question {
	for _, q := range Questions() {
		if q.Flag == flag {
			return q
		}
	}
	return Question{Flag: flag}
}

// Flags are the answers that the command line gives, and the flags besides the questions.
type Flags struct {
	set                       *pflag.FlagSet
	NoInput, Force, AllowHTTP bool
	api                       string
	keyFile                   string
}

// register adds a flag for each question, and the others.
func register(set *pflag.FlagSet) *Flags {
	f := &Flags{set: set}
	for _, q := range Questions() {
		switch {
		case q.kind == several:
			set.StringArrayP(q.Flag, q.Short, nil, q.Help)
		case slices.ContainsFunc(outputQuestions(), func(of Question) bool { return of.Flag == q.Flag }):
			set.StringArrayP(q.Flag, q.Short, nil, q.Help+"; repeatable")
		case q.kind == yesNo:
			set.BoolP(q.Flag, q.Short, false, q.Help)
		default:
			set.StringP(q.Flag, q.Short, "", q.Help)
		}
	}
	set.StringVar(&f.keyFile, "api-key-file", "", "file that holds the API key: short for --api-key-reference '${file:PATH}'")
	set.StringVar(&f.api, "api", "", "generation of the service: v1, v2, or auto to ask it (or FORMETL_API; default v1)")
	set.BoolVar(&f.AllowHTTP, "allow-http", false, "send the key over plain HTTP to hosts other than loopback")
	set.BoolVar(&f.Force, "force", false, "replace files that are there; a schema file's columns are kept")
	set.BoolVar(&f.NoInput, "no-input", false, "ask nothing: take what is proposed")
	return f
}

// given are the answers by question.
func (f *Flags) given() map[string][]string {
	answers := map[string][]string{}
	f.set.Visit(func(flag *pflag.Flag) {
		switch {
		case question(flag.Name).Title == "": // a flag of another kind
		case flag.Value.Type() == "stringArray":
			answers[flag.Name] = flag.Value.(pflag.SliceValue).GetSlice()
		default:
			answers[flag.Name] = []string{flag.Value.String()}
		}
	})
	return answers
}

// variable proposes what the environment holds.
func variable(name string) func(*Session) string {
	return func(s *Session) string {
		value, _ := s.o.Load.Lookup(name)
		return value
	}
}

func likelyZone(s *Session) string {
	if zone := variable("FORMETL_TIMEZONE")(s); zone != "" {
		return zone
	}
	return flags.MachineZone()
}

// likelyKind is the kind of output that the flags speak of. After the first output it is a
// dataset, because a file would rule out incremental runs.
func likelyKind(s *Session) string {
	switch {
	case s.answered("path"):
		if strings.HasSuffix(s.value("path"), "/") {
			return dataset
		}
		return file
	case s.answered("partition") || s.answered("mode") && s.value("mode") != full || len(s.outputs) > 0 && !s.answered("format"):
		return dataset
	}
	return file
}

func isDataset(s *Session) bool { return s.value("kind") == dataset }
func onlyDatasets(s *Session) bool {
	return isDataset(s) && !slices.ContainsFunc(s.outputs, func(out map[string]string) bool { return out["kind"] == file })
}

func isRemote(s *Session) bool { return strings.Contains(s.value("path"), "://") }

// formatOpen tells whether the format is still to be said. The name of a file says it.
func formatOpen(s *Session) bool { return isDataset(s) || !s.answered("path") }

func likelyFormat(s *Session) string {
	switch {
	case !formatOpen(s):
		return ""
	case isDataset(s):
		return "parquet"
	}
	return "csv"
}

// formatChoices are the formats that suit the kind of output, the likely one first.
func formatChoices(s *Session) []Choice {
	about := map[string]string{
		"csv": "CSV", "tsv": "CSV with tabs", "ndjson": "a JSON object a line", "json": "one JSON array",
		"parquet": "Parquet", "arrow": "Arrow IPC", "xlsx": "Excel",
	}
	var all []Choice
	for _, f := range s.o.Load.Formats {
		if f.FileOnly && isDataset(s) {
			continue
		}
		c := Choice{f.Name, strings.TrimSpace(f.Name + ": " + about[f.Name])}
		if f.Name == likelyFormat(s) {
			all = append([]Choice{c}, all...)
			continue
		}
		all = append(all, c)
	}
	return all
}

// likelyPath is one that no other output has.
func likelyPath(s *Session) string {
	folder, name := "lake", "/{form}/"
	if !isDataset(s) {
		folder, name = "out", "/{form}"+extensionOf(s.o.Load.Formats, s.value("format"))
	}
	path := folder + name
	for n := 2; slices.ContainsFunc(s.outputs, func(out map[string]string) bool { return out["path"] == path }); n++ {
		path = folder + strconv.Itoa(n) + name
	}
	return path
}

func extensionOf(formats []load.Format, name string) string {
	for _, f := range formats {
		if f.Name == name {
			return f.Extension
		}
	}
	return "." + name
}

func likelySchema(s *Session) string {
	if singleForm(s) != "" {
		return inferred
	}
	return none
}

// likelyFile is named after the form, or after the account if there are several.
func likelyFile(s *Session) string {
	if form := singleForm(s); form != "" {
		return form + ".yaml"
	}
	if account := s.value("account"); account != "" {
		return account + ".yaml"
	}
	return "definition.yaml"
}
