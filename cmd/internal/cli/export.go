package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

type exportFlags struct {
	service                                              serviceFlags
	form, output, format, from, to, window, view, labels string
	match, names, schema, state, progress, report        string
	where                                                []string
	noVerify, excel, codebook, fresh                     bool
	s3                                                   definition.S3
}

func (a *app) exportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export --form FORM [-o FILE]",
		Short: "Export one form to one file, without a definition",
		Long: `Export writes every result of one form to a file, or as CSV to standard output.
The format follows from the file's extension: .csv .csv.gz .csv.zst .ndjson
.ndjson.gz .json .parquet .arrow .xlsx. FILE may be s3://bucket/path; credentials come from
the AWS environment variables, profile or role.`,
		Example: `  formetl export --base-url https://fs1.example.com --account acme --form form1 -o form1.csv
  formetl export --form form1 -o form1.parquet --from 2026-01-01 --to 2026-02-01
  formetl export --form form1 --where result_status:equals=Complete --where 12:not_empty | head
  formetl export --form form1 -o s3://bucket/form1.parquet --s3-region eu-west-1`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.export(cmd.Context(), f) },
	}
	f.service.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.form, "form", "", "the form's directory")
	flags.StringVarP(&f.output, "output", "o", definition.StdoutPath, "file to write, or s3://bucket/path; - for standard output")
	flags.StringVar(&f.format, "format", "", "csv, ndjson, json, parquet, arrow or xlsx (default: from the file's extension, csv for standard output)")
	flags.StringVar(&f.from, "from", "", "beginning of the range, wall clock of the account's zone")
	flags.StringVar(&f.to, "to", "", "end of the range, exclusive")
	flags.StringVar(&f.window, "window", "auto", "size of the windows of time: auto, or 15m 6h 1d 7d 1mo")
	flags.StringVar(&f.view, "view", "", "id of a Results View")
	flags.StringVar(&f.labels, "custom-labels", "", "id of a set of custom labels")
	flags.StringArrayVar(&f.where, "where", nil, "COLUMN:OP[=TERM], OP one of equals contains begins ends empty not_empty; repeatable")
	flags.StringVar(&f.match, "match", "and", "how several --where combine: and, or")
	flags.StringVar(&f.names, "names", "label", "columns are named by label or id")
	flags.StringVar(&f.schema, "schema", "", "schema file with the columns and their types")
	flags.BoolVar(&f.excel, "excel", false, "CSV for spreadsheets: a byte-order mark, CR LF, local times, no cell that is a formula or is changed")
	flags.BoolVar(&f.codebook, "codebook", true, "write what describes the columns beside the file: .schema.json and .codebook.csv")
	flags.StringVar(&f.state, "state", "", "folder of budgets and spool (default: formetl/ in your cache folder)")
	flags.BoolVar(&f.fresh, "fresh", false, "read everything again, also what an export that ended early had read within the last hour")
	flags.StringVar(&f.progress, "progress", progressAuto, progressUsage)
	flags.StringVar(&f.report, "report", "", "write a report of the run to this file, as JSON")
	flags.StringVar(&f.s3.Endpoint, "s3-endpoint", "", "URL of an S3 server other than AWS")
	flags.StringVar(&f.s3.Region, "s3-region", "", "the bucket's region (default: AWS_REGION, or the profile's)")
	flags.BoolVar(&f.s3.PathStyle, "s3-path-style", false, "put the bucket into the path instead of the host name")
	flags.IntVar(&f.service.maxRequests, "max-requests", definition.DefaultMaxRequests, "most requests that the plan may need; one that needs more is not begun")
	flags.BoolVar(&f.noVerify, "no-verify", false, "do not reconcile with the service's count")
	return cmd
}

func (a *app) export(ctx context.Context, f exportFlags) error {
	def, err := f.definition(a)
	if err != nil {
		return err
	}
	options := pipelines.Options{Tables: tables(), Client: clientOptions(), Stdout: a.stdout}
	if err := testHooks(a.lookup, &options); err != nil {
		return err
	}
	if err := parseRange(f.from, f.to, &options); err != nil {
		return err
	}
	def.Extract.From, def.Extract.To = options.From, options.To
	bar, err := a.newProgress(f.progress)
	if err != nil {
		return err
	}
	log, err := a.begin(levelWarn)
	if err != nil {
		return err
	}
	if err := reportPlace(f.report).check(); err != nil {
		return err
	}
	options.Full, options.Resume = f.fresh, a.resumption(options, f.fresh)
	options.Logger, options.Progress = log.Logger, bar.update
	options.Tables.Open = opener(log.Logger)
	report, err := pipelines.Run(ctx, def, options)
	bar.finish()
	judgeReport(report, err)
	a.kept = keptOf("for an hour", report)
	if werr := writeReports(f.report, []*pipelines.Report{report}); werr != nil {
		err = errors.Join(err, werr)
	}
	if err != nil {
		return err
	}
	a.summary(report, f.service.machinesZone(a))
	return nil
}

// resumable is how long ago the first of the results was read that an export
// takes over of another one that ended early.
const resumable = time.Hour

// resumption says first of all what is taken over of an earlier export: a
// person who exports again expects what the form holds by now.
func (a *app) resumption(o pipelines.Options, fresh bool) pipelines.Resume {
	if fresh {
		return pipelines.Resume{Within: -1}
	}
	now := time.Now
	if o.Now != nil {
		now = o.Now
	}
	return pipelines.Resume{Within: resumable, Told: func(results int64, oldest time.Time) {
		are := "are"
		if results == 1 {
			are = "is"
		}
		a.logs.tell(levelInfo, fmt.Sprintf("resuming: %s read %s %s taken over; --fresh reads them again", plural(int(results), "result"), ago(now().Sub(oldest)), are),
			slog.Int64("results", results), slog.Time("since", oldest.UTC()))
	}}
}

// definition makes of the flags what a file would say.
func (f *exportFlags) definition(a *app) (*definition.Definition, error) {
	if err := checkForm(f.form); err != nil {
		return nil, err
	}
	labels, err := byLabel(f.names)
	if err != nil {
		return nil, err
	}
	source, err := f.service.source(a)
	if err != nil {
		return nil, err
	}
	def := &definition.Definition{
		Name: "export", Source: source, Forms: []string{f.form}, Labels: labels,
		Extract: definition.Extract{Settle: definition.DefaultSettle, View: f.view, CustomLabels: f.labels, Verify: !f.noVerify},
	}
	if definition.IsGlob(f.form) {
		return nil, fmt.Errorf("--form %q: export takes one form by its name; a definition takes several", f.form)
	}
	if def.Extract.Window, err = definition.ParseWindow(f.window); err != nil {
		return nil, fmt.Errorf("--window: %w", err)
	}
	if def.Extract.Search, err = f.search(); err != nil {
		return nil, err
	}
	if f.schema != "" {
		if def.Schema, err = definition.LoadSchemaWithKey(f.schema, a.lookup); err != nil {
			return nil, err
		}
	}
	if def.State, err = stateFolder(f.state); err != nil {
		return nil, err
	}
	out, err := f.outputOf()
	if err != nil {
		return nil, err
	}
	out.NoCodebook = !f.codebook
	def.Outputs = []definition.Output{out}
	return def, def.Explode()
}

// search reads the criteria of --where.
func (f *exportFlags) search() (extract.Search, error) {
	s := extract.Search{Any: f.match == "or"}
	if f.match != "and" && f.match != "or" {
		return s, fmt.Errorf("--match %q: give and or or", f.match)
	}
	type pair struct {
		column string
		op     extract.Operator
	}
	seen := map[pair]bool{}
	for _, w := range f.where {
		c, err := criterion(w)
		if err != nil {
			return s, err
		}
		if seen[pair{c.Column, c.Operator}] {
			return s, fmt.Errorf("--where %s: the service takes one %s for column %s (specification, section 4.5, rule 2)", w, c.Operator, c.Column)
		}
		seen[pair{c.Column, c.Operator}] = true
		s.Where = append(s.Where, c)
	}
	return s, nil
}

func criterion(text string) (extract.Criterion, error) {
	head, term, hasTerm := strings.Cut(text, "=")
	column, op, ok := strings.Cut(head, ":")
	c := extract.Criterion{Column: column, Operator: extract.Operator(op), Term: term}
	if !ok || column == "" {
		return c, fmt.Errorf("--where %q: write COLUMN:OP=TERM, for example result_status:equals=Complete", text)
	}
	switch c.Operator {
	case extract.OpEmpty, extract.OpNotEmpty:
		if hasTerm {
			return c, fmt.Errorf("--where %q: %s takes no term", text, op)
		}
	case extract.OpEquals, extract.OpContains, extract.OpBegins, extract.OpEnds:
		if !hasTerm {
			return c, fmt.Errorf("--where %q: %s needs a term: %s=TERM", text, op, head)
		}
	default:
		return c, fmt.Errorf("--where %q: the operator %q is none of equals contains begins ends empty not_empty", text, op)
	}
	return c, nil
}
