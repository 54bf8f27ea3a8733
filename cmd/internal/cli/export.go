package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// exportFlags are the flags of export. A flag that stands for a key of a
// definition's extract part is read into extract.
type exportFlags struct {
	pickFlags
	service                      console.ServiceFlags
	span                         console.RangeFlags
	output                       outputFlags
	watch                        watchFlags
	extract                      definition.Extract
	window, names, schema, state string
	forms                        []string
	noVerify, strict, fresh      bool
}

// pickFlags say which results and columns are wanted.
type pickFlags struct {
	where, columns []string
	match          string
	limit          int64
}

func exportCommand(p *process) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export --form FORM [-o FILE]",
		Short: "Export one form to one file, without a definition",
		Long: `Export writes every result of one form to a file, or as CSV to standard output.
The format follows from the file's extension: .csv .csv.gz .csv.zst .tsv .ndjson
.ndjson.gz .jsonl .json .parquet .arrow .xlsx. FILE may be s3://bucket/path; credentials
come from the AWS environment variables, profile or role.

COLUMN is a heading as the export shows it, the label on the form, item_<id>, or an id.

A file that formetl did not write is overwritten only with --force.`,
		Example: `  formetl export --base-url https://fs1.example.com --account acme --form form1 -o form1.csv
  formetl export --form form1 -o form1.parquet --from 2026-01-01 --to 2026-02-01
  formetl export --form form1 --where result_status:equals=Complete --where full_name:not_empty | head
  formetl export --form form1 --select full_name,date_finish --limit 20
  formetl export --form form1 -o s3://bucket/form1.parquet --s3-region eu-west-1`,
		Args: console.NoArguments,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return console.AboveZero(cmd.Flags(), "limit", "leave it out for all results")
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return export(cmd.Context(), p, f) },
	}
	set := cmd.Flags()
	f.service.Register(set)
	f.service.RegisterMaxRequests(set)
	f.span.Register(set)
	set.StringArrayVar(&f.where, "where", nil, "COLUMN:OP[=TERM], OP one of equals contains begins ends empty not_empty; repeatable")
	set.StringVar(&f.match, "match", "and", "how several --where combine: and, or")
	f.output.register(set)
	console.RegisterNames(set, &f.names)
	set.StringArrayVar(&f.columns, "select", nil, "write only this COLUMN, in the order given; repeatable, or several with commas")
	set.Int64Var(&f.limit, "limit", 0, "write only the first so many results, by id; nothing is verified then")
	set.StringArrayVar(&f.forms, "form", nil, "the form's directory")
	set.StringVar(&f.window, "window", "auto", "size of the windows of time: auto, or 15m 6h 1d 7d 1mo")
	set.StringVar(&f.extract.View, "view", "", "id of a Results View")
	set.StringVar(&f.extract.CustomLabels, "custom-labels", "", "id of a set of custom labels")
	set.StringVar(&f.schema, "schema", "", "schema file with the columns and their types")
	set.StringVar(&f.state, "state", "", "folder of budgets and checkpoints, or s3://bucket/prefix/ (default: formetl/ in your cache folder)")
	set.BoolVar(&f.fresh, "fresh", false, "read everything again, also what an export that ended early had read within the last hour")
	f.watch.register(set, "write a report of the run to this file, as JSON, or as a page if it ends with .html")
	set.BoolVar(&f.noVerify, "no-verify", false, "do not reconcile with the service's count")
	set.BoolVar(&f.strict, "strict", false, "end with 65 where the export cannot prove that no result is missing or there twice")
	return cmd
}

func export(ctx context.Context, p *process, f exportFlags) error {
	def, err := f.definition(ctx, p)
	if err != nil {
		return err
	}
	bar, err := p.log.NewProgress(f.watch.progress)
	if err != nil {
		return err
	}
	common, err := p.start(slog.LevelWarn, f.span.Options)
	if err != nil {
		return err
	}
	def.Extract.From, def.Extract.To = common.From, common.To
	options := pipelines.Options{Options: common}
	if err := checkSpan(def, common); err != nil {
		return err
	}
	f.noteZone(p, def)
	claim, err := takeOutput(ctx, def, common, f.output.force)
	if err != nil {
		return err
	}
	err = f.resolve(ctx, p, def, common)
	if err == nil {
		err = f.watch.prepare(p, bar, &options)
	}
	if err != nil {
		return errors.Join(err, claim.End(context.WithoutCancel(ctx), nil))
	}
	stop := func() {}
	if !bar.Shown() {
		stop = p.beat(ctx, &options)
	}
	quiet := time.AfterFunc(time.Second, func() { f.tellWait(p, def, bar) })
	report, err := f.run(ctx, p, def, options)
	quiet.Stop()
	stop()
	bar.Finish()
	gone := console.ReaderGone(err)
	if gone { // as with `| head`: the reader has what it wants
		err = nil
	}
	console.SetExitCodes(report, err)
	p.kept = console.Kept("for an hour", report)
	if err = errors.Join(err, claim.End(context.WithoutCancel(ctx), report), f.watch.write(ctx, p, report)); err != nil || gone {
		return err
	}
	p.log.Summarize(report, f.service.MachinesZone(p.lookup))
	return nil
}

// run reads the form, or its first results.
func (f *exportFlags) run(ctx context.Context, p *process, def *definition.Definition, o pipelines.Options) (*pipelines.Report, error) {
	if f.limit > 0 {
		return pipelines.Head(ctx, def, o, f.limit)
	}
	o.Full, o.Resume = f.fresh, resumption(p.log, o.Now, f.fresh)
	return pipelines.Run(ctx, def, o)
}

// tellWait tells a person who waits for rows on standard output why there are none yet.
func (f *exportFlags) tellWait(p *process, def *definition.Definition, bar *console.Progress) {
	const why = "rows come at the end; quick look: --limit"
	switch {
	case f.limit > 0 || def.Outputs[0].Path != definition.StdoutPath:
	case bar.Shown():
		bar.Say(why)
	case console.IsTerminal(p.stdout):
		p.log.Tell(slog.LevelInfo, why)
	}
}

// noteZone says in the first line what it means that nobody named the account's zone and
// the machine's is UTC, as it is on most servers.
func (f *exportFlags) noteZone(p *process, def *definition.Definition) {
	zone := def.Source.Zone.String()
	if f.service.MachinesZone(p.lookup) && (zone == "UTC" || zone == "Etc/UTC") {
		p.log.Tell(slog.LevelWarn, "note: times are taken for UTC, this machine's zone; if the account has another, they are off by hours: give --timezone")
	}
}

// resumable is how old the oldest result may be that an export takes over from an
// earlier one.
const resumable = time.Hour

// resumption lets an export resume an earlier one and tells so at once, because
// a person who exports again expects what the form holds by now.
func resumption(log *console.Log, now func() time.Time, fresh bool) pipelines.Resume {
	if fresh {
		return pipelines.Resume{Within: -1}
	}
	return pipelines.Resume{Within: resumable, Told: func(results int64, oldest time.Time) {
		are := "are"
		if results == 1 {
			are = "is"
		}
		log.Tell(slog.LevelInfo, fmt.Sprintf("resuming: %s read %s %s taken over; --fresh reads them again", console.Plural(results, "result"), console.Ago(now().Sub(oldest)), are),
			slog.Int64("results", results), slog.Time("since", oldest.UTC()))
	}}
}

// definition is what a definition file would say in place of the flags.
func (f *exportFlags) definition(ctx context.Context, p *process) (*definition.Definition, error) {
	form := ""
	switch {
	case len(f.forms) == 1:
		form = f.forms[0]
	case len(f.forms) > 1:
		return nil, fmt.Errorf("--form was given %d times: export takes one form; run it once for each, or write a definition", len(f.forms))
	}
	def, err := p.define("export", form, &f.service, f.state)
	if err != nil {
		return nil, err
	}
	if definition.IsGlob(form) {
		return nil, fmt.Errorf("--form %q: export takes one form by its name; a definition takes several", form)
	}
	if def.Labels, err = console.ByLabel(f.names); err != nil {
		return nil, err
	}
	if f.noVerify && f.strict {
		return nil, console.Usagef("--no-verify leaves out what --strict demands: give one of them")
	}
	def.Extract = f.extract
	def.Extract.Settle, def.Extract.Verify, def.Extract.Proof = definition.DefaultSettle, !f.noVerify, f.strict
	if def.Extract.Window, err = definition.ParseWindow(f.window); err != nil {
		return nil, fmt.Errorf("--window: %w", err)
	}
	if def.Extract.Search, err = f.search(); err != nil {
		return nil, err
	}
	if f.schema != "" {
		if def.Schema, err = definition.LoadSchema(f.schema, console.Secrets(ctx, p.lookup)); err != nil {
			return nil, err
		}
	}
	out, err := f.output.output()
	if err != nil {
		return nil, err
	}
	if err := f.output.checkTerminal(out, console.IsTerminal(p.stdout)); err != nil {
		return nil, err
	}
	def.Outputs = []definition.Output{out}
	return def, def.Explode()
}

// search is the search that --where and --match ask the service for.
func (f *exportFlags) search() (extract.Search, error) {
	s := extract.Search{Any: f.match == "or"}
	if f.match != "and" && f.match != "or" {
		return s, fmt.Errorf("--match %q: give and or or", f.match)
	}
	for _, w := range f.where {
		c, err := criterion(w)
		if err != nil {
			return s, err
		}
		s.Where = append(s.Where, c)
	}
	return s, nil
}

func criterion(text string) (extract.Criterion, error) {
	head, term, hasTerm := strings.Cut(text, "=")
	colon := strings.LastIndex(head, ":") // a heading may hold others
	if colon <= 0 {
		return extract.Criterion{}, fmt.Errorf("--where %q: write COLUMN:OP=TERM, OP one of equals contains begins ends empty not_empty, for example result_status:equals=Complete", text)
	}
	column, op := head[:colon], head[colon+1:]
	c := extract.Criterion{Column: column, Operator: extract.Operator(op), Term: term}
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
