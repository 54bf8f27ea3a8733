package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// outputFlags say where export writes, and how.
type outputFlags struct {
	path, format                     string
	excel, codebook, manifest, force bool
	s3                               definition.S3
}

func (f *outputFlags) register(set *pflag.FlagSet) {
	set.StringVarP(&f.path, "output", "o", definition.StdoutPath, "file to write, or s3://bucket/path; - for standard output")
	set.StringVar(&f.format, "format", "", strings.Join(formatNames(), ", ")+" (default: from the file's extension, csv for standard output)")
	set.BoolVar(&f.excel, "excel", false, "CSV for spreadsheets: a byte-order mark, CR LF, local times, no cell that is a formula")
	set.BoolVar(&f.codebook, "codebook", false, "also write what describes the columns beside the file: .schema.json and .codebook.csv")
	set.BoolVar(&f.manifest, "manifest", false, "also write what was done beside the file: FILE.manifest.json, with the file's SHA-256")
	set.BoolVar(&f.force, "force", false, "overwrite a file that formetl did not write")
	set.StringVar(&f.s3.Endpoint, "s3-endpoint", "", "URL of an S3 server other than AWS")
	set.StringVar(&f.s3.Region, "s3-region", "", "the bucket's region (default: AWS_REGION, or the profile's)")
	set.BoolVar(&f.s3.PathStyle, "s3-path-style", false, "put the bucket into the path instead of the host name")
}

func (f *outputFlags) output() (definition.Output, error) {
	out, err := f.place()
	if err != nil || !f.excel {
		return out, err
	}
	out.Profile = "excel"
	if format, _ := fileFormats.Format(out.Format); !format.Profiles {
		return out, fmt.Errorf("--excel is for CSV, and the format is %s", out.Format)
	}
	return out, nil
}

// checkTerminal refuses to write bytes to a terminal that are no text.
func (f *outputFlags) checkTerminal(out definition.Output, terminal bool) error {
	if !terminal || out.Path != definition.StdoutPath {
		return nil
	}
	if format, _ := fileFormats.Format(out.Format); format.Text {
		return nil
	}
	return fmt.Errorf("--format %s is not for a terminal: give -o FILE, or send it through a pipe", out.Format)
}

// place is where the results go, and in what format.
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

// checkPath checks the path of a file, and the --s3 flags, which are for s3://
// paths alone.
func (f *outputFlags) checkPath() error {
	scheme, rest, remote := strings.Cut(f.path, "://")
	bucket, key, _ := strings.Cut(rest, "/")
	forS3 := f.s3.Endpoint != "" || f.s3.Region != "" || f.s3.PathStyle
	switch {
	case forS3 && !definition.OnS3(f.path):
		return errors.New("the --s3 flags are for -o s3://bucket/path")
	case f.s3.Endpoint != "" && !definition.IsEndpoint(f.s3.Endpoint):
		return errors.New("--s3-endpoint: give an address such as https://s3.example.com or http://127.0.0.1:9000; credentials come from the environment")
	case remote && !slices.Contains(console.Schemes(), scheme):
		return fmt.Errorf("-o %s: give a local path or s3://bucket/path", f.path)
	case strings.HasSuffix(f.path, "/"):
		return fmt.Errorf("-o %s is a folder; export writes one file, a definition writes datasets", f.path)
	case remote && (bucket == "" || key == "" || path.Clean("/"+key) != "/"+key):
		return fmt.Errorf("-o %s: write s3://bucket/path in its shortest form", f.path)
	case remote:
		return nil
	}
	if info, err := os.Stat(f.path); err == nil && info.IsDir() {
		return fmt.Errorf("-o %s is a folder; give the file's name too", f.path)
	}
	return nil
}

// fileFormats finds the formats of files by their names.
var fileFormats = output.Tables{Formats: console.Formats()}

// formatNames are the names of the formats of files.
func formatNames() (names []string) {
	for _, f := range console.Formats() {
		names = append(names, f.Name)
	}
	return names
}

// formatOf finds a file's format, and the codec around it, by its extensions and
// by --format. The two must not contradict each other, because everybody else
// goes by the file's name.
func formatOf(file, flag string) (format, codec string, err error) {
	stem, codec := load.SplitCodec(strings.ToLower(file))
	if lines, ok := strings.CutSuffix(stem, ".jsonl"); ok {
		stem = lines + ".ndjson" // two names of one format
	}
	all := console.Formats()
	at := slices.IndexFunc(all, func(f load.Format) bool { return strings.HasSuffix(stem, f.Extension) })
	switch {
	case flag == "" && at < 0:
		return "", "", fmt.Errorf("-o %s: its extension names no format; use the name of one: %s, or give --format", file, strings.Join(formatNames(), ", "))
	case flag != "" && at >= 0 && all[at].Name != flag:
		return "", "", fmt.Errorf("-o %s is a name for %s, and --format says %s; change one of them", file, all[at].Name, flag)
	case flag != "":
		at = slices.IndexFunc(all, func(f load.Format) bool { return f.Name == flag })
	}
	if codec != "" && !all[at].Text {
		return "", "", fmt.Errorf("-o %s: the format %s is compressed inside, not around; leave %s out", file, all[at].Name, load.CompressionExtension(codec))
	}
	return all[at].Name, codec, nil
}
