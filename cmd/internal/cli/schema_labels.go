package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/labels"
)

type labelsFlags struct {
	console.DefinitionFlags
	program, csv, flat string
	force              bool
}

func schemaLabelsCommand(p *process) *cobra.Command {
	var f labelsFlags
	cmd := &cobra.Command{
		Use:   "labels DEFINITION --for spss|r",
		Short: "Print a script that reads a CSV file of formetl into SPSS or R, with labels",
		Long: `Labels prints a script for a statistics program. The script reads the CSV file that the
definition writes, with types, the form's questions as variable labels, and choices as
value labels (SPSS, PSPP) or factors (R, without packages). Run the definition first,
because the script needs the file, and the codebook that a run writes beside it. SPSS
takes a line break within a text for the end of a row: if there are any, --flat writes
a copy of the file that has spaces in their place.`,
		Example: `  formetl schema labels feedback.yaml --for spss > feedback.sps
  formetl schema labels feedback.yaml --for spss --flat flat.csv > feedback.sps
  formetl schema labels feedback.yaml --for r --form form1 > feedback.R
  formetl schema labels feedback.yaml --for r --csv downloaded.csv.gz > feedback.R`,
		Args: console.OneDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return schemaLabels(cmd.Context(), p, args, f) },
	}
	set := cmd.Flags()
	f.RegisterForms(set)
	f.RegisterKey(set, ", instead of the definition's reference")
	set.StringVar(&f.program, "for", "", "the program: spss (also PSPP) or r")
	set.StringVar(&f.csv, "csv", "", "path of the CSV file, if you moved or downloaded it (default: the definition's path)")
	set.StringVar(&f.flat, "flat", "", "write a copy of the CSV file without line breaks in texts to this file, for the script to read")
	set.BoolVar(&f.force, "force", false, "overwrite the file of --flat")
	return cmd
}

func schemaLabels(ctx context.Context, p *process, files []string, f labelsFlags) error {
	script, ok := map[string]func(*labels.File) string{"spss": labels.SPSS, "r": labels.R}[f.program]
	if !ok {
		return console.Usagef("--for %q: give spss or r", f.program)
	}
	defs, options, err := p.openOutputs(ctx, &f.DefinitionFlags, files, withoutKey)
	if err != nil {
		return err
	}
	def := defs[0]
	forms, err := pipelines.ListForms(ctx, def, options)
	if err != nil {
		return err
	}
	if len(forms) != 1 {
		return console.Usagef("a script is for one form, and the definition has %d: choose one with --form", len(forms))
	}
	if def, err = def.For(forms[0]); err != nil {
		return err
	}
	i := slices.IndexFunc(def.Outputs, func(out definition.Output) bool {
		return out.Format == "csv" && !out.Dataset() && !out.Exploded() && (out.Lasting() || f.csv != "" && out.Path != definition.StdoutPath)
	})
	if i < 0 {
		return &definition.Fault{Code: 78, Text: def.File + " has no output that SPSS or R can read: none is a single CSV file that stays where it is", Cure: `add the output - {path: "out/{form}.csv"} under load:, and run the definition`}
	}
	out, job := def.Outputs[i], options.WithDefaults().Job(def, forms[0])
	columns, err := p.columnsIn(ctx, &f.DefinitionFlags, job, out, options)
	if err != nil {
		return err
	}
	choices, err := job.Choices(ctx, out)
	if err != nil {
		return err
	}
	inFile := func(text string) string { return text }
	if out.Profile == "excel" {
		inFile = load.ForSheets
	}
	file := &labels.File{Zone: def.Source.Zone.String(), Columns: labels.Columns(columns, choices, inFile)}
	at, err := output.Locate(def, out, job.Form, job.RunID)
	if err == nil {
		err = f.read(cmp.Or(f.csv, at.Path), file)
	}
	if err != nil {
		return err
	}
	return console.Print(p.stdout, []byte(script(file)))
}

// columnsIn returns the columns of a CSV file: those that its last run noted, or those that a run
// would write.
func (p *process) columnsIn(ctx context.Context, f *console.DefinitionFlags, job *output.Job, out definition.Output, o pipelines.Options) (columns []schemas.Column, err error) {
	m, err := job.Manifest(ctx, out)
	if err != nil {
		return nil, err
	}
	if m != nil {
		columns, err = output.ColumnsOf(m)
		for i := range columns {
			columns[i].ListAs, columns[i].Choices = schemas.ListAs(m.Schema[i].ListAs), m.Schema[i].Choices
		}
		return columns, err
	}
	err = p.eachForm(ctx, f, job.Def, o, []string{job.Form}, func(_ *definition.Definition, _ string, found *upkeep.FormColumns) error {
		columns = found.Schema.Written()
		return nil
	})
	return columns, err
}

// read measures the CSV file, and writes its copy if there is to be one.
func (f *labelsFlags) read(path string, file *labels.File) (failed error) {
	if definition.OnS3(path) {
		return console.Usagef("%s is on S3, which R and SPSS cannot read: download it, and give its path with --csv FILE", path)
	}
	_, codec := load.SplitCodec(path)
	if packed := load.CompressionExtension(codec); packed != "" && (codec != load.CodecGzip || f.program == "spss" && f.flat == "") {
		return console.Usagef("%s is compressed, and SPSS reads no compressed files and R only .gz: decompress it, and give its path with --csv FILE", path)
	}
	var err error
	if file.Path, err = filepath.Abs(path); err != nil {
		return err
	}
	data, err := os.Open(file.Path)
	if err != nil {
		return &definition.Fault{Code: 66, Text: "the CSV file " + file.Path + " cannot be read: " + errors.Unwrap(err).Error(), Cure: "run the definition first, or give the path of its CSV file with --csv FILE"}
	}
	defer func() { _ = data.Close() }()
	var in io.Reader = data
	if codec == load.CodecGzip {
		if in, err = gzip.NewReader(data); err != nil {
			return err
		}
	}
	copied := io.Discard
	if f.flat != "" {
		if file.Path, err = filepath.Abs(f.flat); err != nil {
			return err
		}
		how := os.O_CREATE | os.O_WRONLY | os.O_EXCL
		if f.force && file.Path != data.Name() {
			how = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
		}
		flat, err := os.OpenFile(file.Path, how, 0o640)
		if errors.Is(err, fs.ErrExist) {
			return &definition.Fault{Code: 73, Text: "--flat " + file.Path + " already exists", Cure: "add --force to overwrite it, or choose another file"}
		}
		if err != nil {
			return &definition.Fault{Code: 73, Text: "the copy of --flat cannot be written: " + err.Error(), Cure: "make its folder (mkdir -p " + definition.ShellWord(filepath.Dir(file.Path)) + "), or give --flat another path"}
		}
		defer func() {
			if failed = cmp.Or(failed, flat.Close()); failed != nil {
				_ = os.Remove(file.Path) // half a copy
			}
		}()
		copied = flat
	}
	if err := file.Measure(in, copied); err != nil {
		return &definition.Fault{Code: 65, Text: path + ": " + err.Error(), Cure: "run the definition again, or give a file that it wrote with --csv FILE"}
	}
	if f.flat == "" && f.program == "spss" && file.Broken != "" {
		return &definition.Fault{Code: 65, Text: path + " has a line break within a text, in " + file.Broken + "; SPSS would read it as the end of a row", Cure: "add --flat FILE to write a copy with spaces instead of line breaks"}
	}
	return nil
}
