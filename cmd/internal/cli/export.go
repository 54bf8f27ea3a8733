package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
	"github.com/formetl/formetl/transform"
)

// exportFlags are the flags of export. A flag that stands for a key of extract, a part of a
// definition, is read into the field extract.
type exportFlags struct {
	pickFlags
	service                      console.ServiceFlags
	span                         console.RangeFlags
	output                       outputFlags
	watch                        watchFlags
	extract                      definition.Extract
	window, names, schema, state string
	forms                        []string
	files                        string
	noVerify, strict, fresh      bool
}

// pickFlags are the flags that say which results and columns to export.
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
The file's extension gives the format: .csv .csv.gz .csv.zst .tsv .ndjson .ndjson.gz
.jsonl .json .parquet .arrow .xlsx. FILE may be s3://bucket/path; credentials come
from the AWS environment variables, profile or role.

COLUMN is a column's name in the export, the label on the form, item_<id>, or an id.
A file that an export wrote and nobody changed is replaced without asking, any other
only with --force.`,
		Example: `  formetl export --base-url https://fs1.example.com --account acme --form form1 -o form1.csv
  formetl export --form form1 -o form1.parquet --from 2026-01-01 --to 2026-02-01
  formetl export --form form1 --where result_status:equals=Complete --where full_name:not_empty | head
  formetl export --form form1 --select full_name,date_finish --limit 20
  formetl export --form form1 -o s3://bucket/form1.parquet --s3-region eu-west-1`,
		Annotations: map[string]string{commonFlags: "base-url account form output from to last where select limit"},
		Args:        console.NoArguments,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return console.AboveZero(cmd.Flags(), "limit", "leave it out for all results")
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return export(cmd.Context(), p, f) },
	}
	set := cmd.Flags()
	f.service.Register(set, "")
	f.service.RegisterMaxRequests(set)
	f.span.Register(set, "no limit")
	set.StringArrayVar(&f.where, "where", nil, "only results that match COLUMN:OP[=TERM]; OP is equals, contains, begins, ends, empty or not_empty; repeatable")
	set.StringVar(&f.match, "match", "and", "with several --where: \"and\", for results that match all of them, or \"or\", for those that match at least one")
	f.output.register(set)
	console.RegisterNames(set, &f.names, "")
	set.StringArrayVar(&f.columns, "select", nil, "write only this COLUMN; repeatable, or several separated by commas, in the order that you want")
	set.Int64Var(&f.limit, "limit", 0, "write only the first N results (those with the lowest ids), and verify nothing")
	set.StringArrayVar(&f.forms, "form", nil, "name of the form, as formetl forms lists it")
	set.StringVar(&f.window, "window", "auto", "length of the spans of time in which results are read and counted, which changes nothing in the file: auto, or such as 15m, 6h, 1d or 1mo")
	set.StringVar(&f.extract.View, "view", "", "id of a Results View of the service, to export its results and columns")
	set.StringVar(&f.extract.CustomLabels, "custom-labels", "", "id of a set of custom labels of the service, to name columns by them")
	set.StringVar(&f.files, "files", "", "also download uploaded files into this folder or s3://bucket/prefix/, with a list in files.csv")
	set.StringVar(&f.schema, "schema", "", "schema file with the columns and their types, as formetl schema infer writes it (default: all columns, answers as text)")
	set.StringVar(&f.state, "state", "", "folder or s3://bucket/prefix/ where exports keep what they have read until they end, and count their requests (default: FORMETL_STATE, or formetl/ in your cache folder)")
	set.BoolVar(&f.fresh, "fresh", false, "read everything again, instead of resuming an export of the last hour that ended early")
	f.watch.register(set, "write a report about the export to this file: JSON, or a web page if the name ends with .html")
	set.BoolVar(&f.noVerify, "no-verify", false, "do not compare with the service's count, so that a missing result is not noticed")
	set.BoolVar(&f.strict, "strict", false, "write nothing and end with 65 if the export cannot prove that no result is missing or duplicated; for --where and --view it is enough that all pages were read")
	return cmd
}

func export(ctx context.Context, p *process, f exportFlags) error {
	def, err := f.definition(ctx, p)
	if err != nil {
		return err
	}
	if console.IsTerminal(p.stdout) && def.Outputs[0].Path == definition.StdoutPath && f.watch.progress == console.ProgressAuto {
		f.watch.progress = "off" // the bar would be in the way of the rows
	}
	bar, err := p.log.NewProgress(f.watch.progress)
	if err != nil {
		return err
	}
	options, err := p.start(slog.LevelWarn, f.span.Options)
	if err != nil {
		return err
	}
	if err := checkSpan(def, options); err != nil {
		return err
	}
	if zone := def.Source.Zone.String(); f.service.NamesNoZone(p.lookup) && (zone == "UTC" || zone == "Etc/UTC") { // most servers have UTC as their zone
		p.log.Tell(slog.LevelWarn, fmt.Sprintf(machinesZone, "UTC"))
	}
	taken, err := takeOutputs(ctx, def, options, f.output.force)
	if err != nil {
		return err
	}
	given := slices.Clone(def.Extract.Search.Where)
	err = f.resolve(ctx, p, def, options)
	if err == nil {
		err = f.watch.prepare(p, bar, &options)
		options.Progress = p.tellFiles(def, options.Progress)
	}
	if err != nil {
		return errors.Join(err, taken.End(context.WithoutCancel(ctx), nil))
	}
	tellUnmatched := p.unmatched(ctx, def, options, given)
	stop := bar.Start(ctx, options.Logger, options.Now(), p.ticks)
	var guarded guardedCells
	options.Guarded = guarded.add
	quiet := time.AfterFunc(time.Second, func() { f.tellWait(p, def, bar) })
	report, err := f.run(ctx, p, def, options)
	quiet.Stop()
	stop()
	gone := console.ReaderGone(err)
	if gone { // the reader of the pipe, such as head, has read enough
		err = nil
	}
	console.SetExitCodes(report, err)
	p.resumable = console.Resumable("the same export within an hour", report)
	if err = errors.Join(err, taken.End(context.WithoutCancel(ctx), report), f.watch.write(ctx, p, report)); err != nil || gone {
		return err
	}
	tellUnmatched(report)
	guarded.tell(p.log)
	p.log.Summarize(report, f.service.NamesNoZone(p.lookup))
	return nil
}

// guardedCells counts the cells to which --excel added a '.
type guardedCells struct {
	mu      sync.Mutex
	n       int64
	columns []string // the headings of such cells
}

func (g *guardedCells) add(column string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
	if column = plain.Line(column); !slices.Contains(g.columns, column) {
		g.columns = append(g.columns, column)
	}
}

// tell explains the cells to a person, if there are any.
func (g *guardedCells) tell(log *console.Log) {
	if g.n == 0 {
		return
	}
	log.Tell(slog.LevelInfo, fmt.Sprintf("%s got a ' in front, in %s (%s): Excel might run texts that begin with =, +, -, @, a tab or a line break as formulas; write .xlsx to do without the '", plain.Plural(g.n, "cell"), plain.Plural(len(g.columns), "column"), plain.Few(g.columns, 20)),
		slog.Int64("cells", g.n), slog.String("columns", strings.Join(g.columns, ", ")))
}

// run exports the form, or its first results with --limit.
func (f *exportFlags) run(ctx context.Context, p *process, def *definition.Definition, o pipelines.Options) (*pipelines.Report, error) {
	if f.limit > 0 {
		return pipelines.Head(ctx, def, o, f.limit)
	}
	o.Full, o.Resume = f.fresh, resumption(p.log, o.Now, f.fresh)
	return pipelines.Run(ctx, def, o)
}

// tellWait tells a person who waits for rows on standard output why no rows have come yet.
func (f *exportFlags) tellWait(p *process, def *definition.Definition, bar *console.Progress) {
	if f.limit == 0 && def.Outputs[0].Path == definition.StdoutPath && (bar.Shown() || console.IsTerminal(p.stdout)) {
		p.log.Tell(slog.LevelInfo, "rows are shown once all results are read; for a quick look add --limit 10")
	}
}

// tellFiles passes progress on to next, and tells a person once how many uploaded files are
// downloaded.
func (p *process) tellFiles(def *definition.Definition, next func(pipelines.Progress)) func(pipelines.Progress) {
	var once sync.Once
	return func(u pipelines.Progress) {
		if next(u); u.FilesPlanned == 0 {
			return
		}
		once.Do(func() {
			text := "downloading " + plain.Plural(u.FilesPlanned, "uploaded file")
			if most := def.Source.Requests.PerMinute; most > 0 {
				text += fmt.Sprintf(", at most %d a minute: about %s", most, plain.Lasting(time.Duration(u.FilesPlanned)*time.Minute/time.Duration(most)))
			}
			p.log.Tell(slog.LevelInfo, text, slog.Int64("files", u.FilesPlanned))
		})
	}
}

// resumeWithin is how old the oldest result may be that an export takes over from an
// earlier export.
const resumeWithin = time.Hour

// resumption lets an export resume an earlier export, and tells so at once, because
// a person who exports again expects the form's results of now.
func resumption(log *console.Log, now func() time.Time, fresh bool) pipelines.Resume {
	if fresh {
		return pipelines.Resume{Within: -1}
	}
	return pipelines.Resume{Within: resumeWithin, Told: func(results int64, oldest time.Time) {
		log.Tell(slog.LevelInfo, fmt.Sprintf("resuming: using %s that an earlier export read %s; add --fresh to read everything again", plain.Plural(results, "result"), console.Ago(now().Sub(oldest))),
			slog.Int64("results", results), slog.Time("since", oldest.UTC()))
	}}
}

// definition returns the definition that corresponds to the flags.
func (f *exportFlags) definition(ctx context.Context, p *process) (*definition.Definition, error) {
	form := strings.Join(f.forms, "")
	switch err := console.CheckForm(form); {
	case len(f.forms) > 1:
		return nil, fmt.Errorf("--form was given %d times, and export takes one form: run it once for each form, or write a definition with `formetl init`", len(f.forms))
	case err != nil:
		return nil, err
	case definition.IsGlob(form):
		return nil, fmt.Errorf("--form %q: export takes the name of one form, not a pattern; for several forms write a definition with `formetl init`", form)
	}
	def, err := p.define("export", form, &f.service, f.state)
	if err != nil {
		return nil, err
	}
	if def.Names, err = console.Naming(f.names); err != nil {
		return nil, err
	}
	switch {
	case f.strict && (f.noVerify || f.limit > 0):
		return nil, console.Usagef("--strict demands a proof, and with --no-verify or --limit there is none: leave out either --strict or these")
	case f.schema != "" && f.names != "label":
		return nil, console.Usagef("--names has no effect with --schema, whose columns have names: give only one of them")
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
	f.output.filesOnS3 = definition.OnS3(f.files)
	out, err := f.output.output()
	if err != nil {
		return nil, err
	}
	if err := f.output.checkTerminal(out, console.IsTerminal(p.stdout)); err != nil {
		return nil, err
	}
	def.Outputs = []definition.Output{out}
	if f.files != "" {
		if def.Files, err = f.folder(def, out.Path); err != nil {
			return nil, err
		}
	}
	return def, def.Explode()
}

// folder returns the folder that --files names.
func (f *exportFlags) folder(def *definition.Definition, output string) (*definition.Files, error) {
	files := &definition.Files{Path: f.files, MaxBytes: definition.DefaultMaxFile, Concurrency: def.Source.Requests.Concurrency}
	switch {
	case f.limit > 0:
		return nil, console.Usagef("--limit and --files do not go together, because --files downloads the files of all results: give only one of them")
	case strings.Contains(f.files, "://"):
		if !definition.OnS3(f.files) {
			return nil, console.Usagef("--files %s: give a folder or s3://bucket/prefix/", f.files)
		}
		files.S3 = &f.output.s3
	default:
		local, err := filepath.Abs(f.files)
		if err != nil {
			return nil, err
		}
		files.Path = filepath.ToSlash(local)
	}
	files.Path = strings.TrimSuffix(files.Path, "/") + "/"
	if files.Path == "/" || strings.HasPrefix(filepath.ToSlash(output)+"/", files.Path) {
		return nil, console.Usagef("--files %s: uploaded files need a folder of their own, without the export's file: give another, such as --files uploads", f.files)
	}
	files.Table = files.Path + "files.csv"
	return files, nil
}

// search returns the search of the service that --where and --match ask for.
func (f *exportFlags) search() (extract.Search, error) {
	s := extract.Search{Any: f.match == "or"}
	if f.match != "and" && f.match != "or" {
		return s, fmt.Errorf("--match %q: give --match and, or --match or", f.match)
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

// criterion reads the value of a flag --where, such as result_status:equals=Complete.
func criterion(where string) (extract.Criterion, error) {
	head, term, hasTerm := strings.Cut(where, "=")
	colon := strings.LastIndex(head, ":") // a column's heading may hold other colons
	if colon <= 0 {
		return extract.Criterion{}, fmt.Errorf("--where %q: write COLUMN:OP=TERM, for example result_status:equals=Complete; OP is equals, contains, begins, ends, empty or not_empty", where)
	}
	column, op := head[:colon], head[colon+1:]
	c := extract.Criterion{Column: column, Operator: extract.Operator(op), Term: term}
	switch c.Operator {
	case extract.OpEmpty, extract.OpNotEmpty:
		if hasTerm {
			return c, fmt.Errorf("--where %q: %s takes no term; leave out everything from the = on", where, op)
		}
	case extract.OpEquals, extract.OpContains, extract.OpBegins, extract.OpEnds:
		if term == "" {
			return c, fmt.Errorf("--where %q: %s needs a term; write %s=TERM, or use empty or not_empty", where, op, head)
		}
	default:
		return c, fmt.Errorf("--where %q: there is no operator %q; give equals, contains, begins, ends, empty or not_empty", where, op)
	}
	return c, nil
}

// outputFlags are the flags that say where and in what format export writes.
type outputFlags struct {
	path, format                     string
	excel, codebook, manifest, force bool
	s3                               definition.S3
	filesOnS3                        bool // the --s3 flags are for --files
}

func (f *outputFlags) register(set *pflag.FlagSet) {
	set.StringVarP(&f.path, "output", "o", definition.StdoutPath, "file to write, or s3://bucket/path; - for standard output")
	set.StringVar(&f.format, "format", "", strings.Join(formatNames(), ", ")+" (default: from the file's extension, csv for standard output)")
	set.BoolVar(&f.excel, "excel", false, "CSV that opens right in Excel: Excel's encoding and line ends, times by the account's clock, and a ' before texts that Excel would run as formulas")
	set.BoolVar(&f.codebook, "codebook", false, "also write a description of the columns beside the file: .schema.json and .codebook.csv")
	set.BoolVar(&f.manifest, "manifest", false, "also write a record of the export beside the file: FILE.manifest.json, with the file's SHA-256")
	set.BoolVar(&f.force, "force", false, "also replace a file that no export wrote, or that was changed since")
	set.StringVar(&f.s3.Endpoint, "s3-endpoint", "", "URL of an S3 server other than AWS")
	set.StringVar(&f.s3.Region, "s3-region", "", "the bucket's region (default: AWS_REGION, or the profile's)")
	set.BoolVar(&f.s3.PathStyle, "s3-path-style", false, "address the bucket in the path instead of the host name, as many servers other than AWS need")
}

func (f *outputFlags) output() (definition.Output, error) {
	out, err := f.place()
	if err != nil || !f.excel {
		return out, err
	}
	out.Profile = "excel"
	if format, _ := fileFormats.Format(out.Format); !format.Profiles {
		return out, fmt.Errorf("--excel is only for CSV, and the format is %s: leave --excel out, or write a .csv file", out.Format)
	}
	return out, nil
}

// checkTerminal refuses to write a format that is not text to a terminal.
func (f *outputFlags) checkTerminal(out definition.Output, terminal bool) error {
	if !terminal || out.Path != definition.StdoutPath {
		return nil
	}
	if format, _ := fileFormats.Format(out.Format); format.Text {
		return nil
	}
	return fmt.Errorf("--format %s cannot be shown on a terminal: add -o FILE, or use a pipe", out.Format)
}

// place returns the output for the results: its path and format.
func (f *outputFlags) place() (definition.Output, error) {
	out := definition.Output{Path: f.path, Format: f.format, Profile: "strict", Partition: definition.PartitionNone, NoCodebook: !f.codebook, NoManifest: !f.manifest}
	if f.format != "" {
		names := formatNames()
		if !slices.Contains(names, f.format) {
			return out, fmt.Errorf("--format %q: give one of %s", f.format, strings.Join(names, ", "))
		}
	}
	if f.path == definition.StdoutPath || f.path == "" {
		out.Path, out.Format = definition.StdoutPath, cmp.Or(f.format, csvout.Format().Name)
		return out, nil
	}
	err := f.checkPath()
	if err != nil {
		return out, err
	}
	if out.Format, out.Compression, err = formatOf(f.path, f.format); err != nil {
		return out, err
	}
	if strings.Contains(f.path, "://") {
		out.Path, out.S3 = f.path, &f.s3
		return out, nil
	}
	out.Path, err = filepath.Abs(f.path)
	return out, err
}

// checkPath checks the path of the output's file, and that the --s3 flags are given only with
// an s3:// path.
func (f *outputFlags) checkPath() error {
	scheme, rest, remote := strings.Cut(f.path, "://")
	bucket, key, _ := strings.Cut(rest, "/")
	forS3 := f.s3.Endpoint != "" || f.s3.Region != "" || f.s3.PathStyle
	switch {
	case forS3 && !definition.OnS3(f.path) && !f.filesOnS3:
		return errors.New("the --s3 flags are only for -o s3://bucket/path: change -o, or leave them out")
	case f.s3.Endpoint != "" && !definition.IsEndpoint(f.s3.Endpoint):
		return errors.New("--s3-endpoint: give an address such as https://s3.example.com or http://127.0.0.1:9000; credentials come from the environment")
	case remote && !slices.Contains(console.Schemes(), scheme):
		return fmt.Errorf("-o %s: give a local path or s3://bucket/path", f.path)
	case strings.HasSuffix(f.path, "/"):
		return fmt.Errorf("-o %s is a folder, and export writes one file: add the file's name; to write a dataset use a definition", f.path)
	case remote && (bucket == "" || key == "" || path.Clean("/"+key) != "/"+key):
		return fmt.Errorf("-o %s: give a bucket and the path of a file, without . or .. in it, such as s3://bucket/forms/feedback.csv", f.path)
	case remote:
		return nil
	}
	if info, err := os.Stat(f.path); err == nil && info.IsDir() {
		return fmt.Errorf("-o %s is a folder: add the file's name", f.path)
	}
	return nil
}

// fileFormats finds the format of a file by the file's name.
var fileFormats = output.BuiltIn{Formats: console.Formats()}

// formatNames returns the names of the formats of files.
func formatNames() (names []string) {
	for _, f := range console.Formats() {
		names = append(names, f.Name)
	}
	return names
}

// formatOf finds a file's format, and the codec that compresses it, by the file's extensions and
// by --format. The two must not contradict each other, because other programs go by the file's
// name.
func formatOf(file, flag string) (format, codec string, err error) {
	stem, codec := load.SplitCodec(strings.ToLower(file))
	if lines, ok := strings.CutSuffix(stem, ".jsonl"); ok {
		stem = lines + ".ndjson" // .jsonl and .ndjson are names of one format
	}
	all := console.Formats()
	at := slices.IndexFunc(all, func(f load.Format) bool { return strings.HasSuffix(stem, f.Extension) })
	switch {
	case flag == "" && at < 0:
		return "", "", fmt.Errorf("-o %s: the name does not say the format; use one of the extensions %s, or add --format", file, strings.Join(formatNames(), ", "))
	case flag != "" && at >= 0 && all[at].Name != flag:
		return "", "", fmt.Errorf("-o %s has the extension of %s, but --format says %s: change one of them", file, all[at].Name, flag)
	case flag != "":
		at = slices.IndexFunc(all, func(f load.Format) bool { return f.Name == flag })
	}
	if codec != "" && !all[at].Text {
		return "", "", fmt.Errorf("-o %s: %s files are compressed already; leave out %s", file, all[at].Name, load.CompressionExtension(codec))
	}
	return all[at].Name, codec, nil
}

// resolve replaces the columns that --where and --select name by the ids that the service knows.
// To know the columns, it asks the service for one result and the headings.
func (f *exportFlags) resolve(ctx context.Context, p *process, def *definition.Definition, o pipelines.Options) error {
	if len(f.where)+len(f.columns) == 0 {
		return nil
	}
	known, err := columnsOf(ctx, def, o)
	if err != nil {
		return err
	}
	if len(known) <= 1 { // the column of the result's id is always known
		p.log.Tell(slog.LevelWarn, "note: the form has neither headings nor results yet, so formetl cannot tell whether it has the columns of --where and --select; check their spelling")
	}
	given := slices.Clone(def.Extract.Search.Where)
	for i, c := range given {
		from, err := sourceOf("--where", c.Column, known)
		switch {
		case err != nil:
			return err
		case from.Kind == schemas.FromResultID:
			return console.Usagef("--where %s: the service cannot search by the id of a result; leave this condition out", c.Column)
		case from.Kind == schemas.FromOther:
			return console.Usagef("--where %s: the service cannot search the column of the texts that people typed beside choices; to find a text, write --api v1 --where %s:contains=TEXT; to see all, leave this condition out and add --api v2", c.Column, strings.TrimSuffix(strings.TrimSuffix(c.Column, "_other"), " (other)"))
		}
		def.Extract.Search.Where[i].Column, def.Extract.Search.Where[i].Given = from.ID, c.Column
	}
	if err := repeated(def.Extract.Search.Where, given); err != nil {
		return err
	}
	for _, name := range listed(f.columns, known) {
		from, err := sourceOf("--select", name, known)
		if err != nil {
			return err
		}
		out := &def.Outputs[0]
		if slices.Contains(out.Select, from) {
			return console.Usagef("--select %s: the column is given twice; leave one out", name)
		}
		out.Select = append(out.Select, from)
	}
	return nil
}

// listed divides names at their commas, except names that are those of one known column.
func listed(given []string, known []schemas.Column) []string {
	var names []string
	for _, name := range given {
		if _, err := sourceOf("", name, known); err == nil && len(known) > 1 {
			names = append(names, name)
			continue
		}
		for part := range strings.SplitSeq(name, ",") {
			names = append(names, strings.TrimSpace(part))
		}
	}
	return names
}

// columnsOf returns the columns that an export of the form has.
func columnsOf(ctx context.Context, def *definition.Definition, o pipelines.Options) ([]schemas.Column, error) {
	client, err := pipelines.NewClient(ctx, def, o)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	form := def.Forms[0]
	p, err := client.Results(ctx, form, extract.ResultsQuery{Limit: 1, Headings: true, CustomLabels: def.Extract.CustomLabels})
	if err != nil {
		return nil, fmt.Errorf("cannot read the headings of form %s: %w", form, err)
	}
	defer p.Release()
	texts := map[string]bool{}
	for _, x := range p.Fields {
		texts[x.ID] = x.Plain // of items alone
	}
	columns := transform.Infer(form, []*page.Page{p}, def.Names)
	declared := &schemas.Schema{}
	if def.Schema != nil {
		*declared = *def.Schema
	}
	if client.Generation() == "v2" { // what people typed may follow beside any item with choices
		for _, s := range []*schemas.Schema{declared, columns} {
			s.AddTyped(def.Names, func(c schemas.Column) bool { return c.Other != schemas.OtherInline && !texts[c.From.ID] })
		}
	}
	return slices.Concat(declared.Columns, columns.Columns), nil // the schema's names take precedence
}

// sourceOf finds a column by its heading, the label on the form, item_<id> or its id. A name that
// fits several columns is an error, and so is a name of no column, unless no column is known.
func sourceOf(flag, name string, known []schemas.Column) (schemas.Source, error) {
	if strings.TrimSpace(name) == "" {
		return schemas.Source{}, console.Usagef("%s: the name of a column is empty, perhaps after a comma too many; give the name or the id of a column", flag)
	}
	meta := func(c schemas.Column) bool { return c.From.Kind == schemas.FromMeta }
	if page.KnownMeta(name) && !slices.ContainsFunc(known, meta) { // without a result known has no metas
		return schemas.Source{Kind: schemas.FromMeta, ID: name}, nil
	}
	guessed := guess(name)
	for _, is := range []func(c schemas.Column) bool{
		func(c schemas.Column) bool { return c.Name == name },
		func(c schemas.Column) bool {
			return c.From.ID == name && c.From.Kind != schemas.FromOther || c.From.String() == name
		},
		func(c schemas.Column) bool { return c.From == guessed },
		func(c schemas.Column) bool { return c.Label == name },
		func(c schemas.Column) bool {
			return strings.EqualFold(c.Name, name) || strings.EqualFold(onOneLine(c.Label), onOneLine(name))
		},
	} {
		var found []schemas.Source
		var names []string
		for _, c := range known {
			if is(c) && !slices.Contains(found, c.From) {
				found, names = append(found, c.From), append(names, c.Name)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return schemas.Source{}, console.Usagef("%s %s: several columns have this label; give the one you mean, %s", flag, name, strings.Join(names, " or "))
		}
	}
	if len(known) <= 1 {
		return guessed, nil
	}
	if of, typed := strings.CutSuffix(name, "_other"); typed && flag == "--where" && slices.ContainsFunc(known, func(c schemas.Column) bool { return c.Name == of }) {
		return schemas.Source{Kind: schemas.FromOther}, nil
	}
	known = slices.DeleteFunc(slices.Clone(known), func(c schemas.Column) bool { return c.From.Kind == schemas.FromOther }) // the form may not have them
	names := make([]string, 0, 2*len(known))
	// The questions of a form tell people more than its metas, so the questions come first.
	ordered := slices.SortedStableFunc(slices.Values(known), func(a, b schemas.Column) int {
		return cmp.Compare(b.From.Item().Kind, a.From.Item().Kind)
	})
	var shown []schemas.Source
	for _, c := range ordered { // a column of the schema comes twice: as the schema names it, and as the form does
		if !slices.Contains(shown, c.From) {
			shown, names = append(shown, c.From), append(names, c.Name)
		}
	}
	for _, c := range known {
		if c.Label != "" && c.Label != c.Name {
			names = append(names, c.Label)
		}
	}
	partly := func(column string) bool {
		return strings.HasPrefix(column, name+"_") || strings.HasSuffix(column, "_"+name) || strings.HasPrefix(name, column+"__")
	}
	if i := slices.IndexFunc(names, partly); i >= 0 { // full_name for name, colours for colours__red
		return schemas.Source{}, console.Usagef("%s %s: the form has no such column; did you mean %s?", flag, name, names[i])
	}
	hint := cmp.Or(plain.Hint(name, names), "; its columns are "+plain.Few(names[:len(shown)], 50))
	return schemas.Source{}, console.Usagef("%s %s: the form has no such column%s", flag, name, hint)
}

// onOneLine returns a label for one line of text: line breaks become blanks.
func onOneLine(label string) string { return strings.Join(strings.Fields(label), " ") }

// guess takes a name for the id of an item if it looks like a number, otherwise for that of a meta.
func guess(name string) schemas.Source {
	id := strings.ReplaceAll(strings.TrimPrefix(name, "item_"), "_", "-")
	if id != "" && strings.Trim(id, "0123456789-") == "" {
		return schemas.Source{Kind: schemas.FromItem, ID: id}
	}
	return schemas.Source{Kind: schemas.FromMeta, ID: name}
}

// repeated refuses criteria that the service takes only once for each operator and column. given
// are the same criteria as the user typed them.
func repeated(where, given []extract.Criterion) error {
	for i, c := range where {
		if slices.ContainsFunc(where[:i], func(o extract.Criterion) bool { return o.Column == c.Column && o.Operator == c.Operator }) {
			return console.Usagef("--where: the service accepts %q only once for each column, but it is given twice for %s; run one export for each", c.Operator, given[i].Column)
		}
	}
	return nil
}
