package cli

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// outputOf reads -o, --format and --excel.
func (f *exportFlags) outputOf() (definition.Output, error) {
	out, err := f.placeOf()
	if err != nil || !f.excel {
		return out, err
	}
	if out.Format != "csv" {
		if out.Format == "xlsx" {
			return out, errors.New("--excel is for CSV, and an .xlsx file needs nothing for spreadsheets: leave it out")
		}
		return out, fmt.Errorf("--excel is for CSV, and the format is %s", out.Format)
	}
	out.Profile = "excel"
	return out, nil
}

// placeOf is where the results go and in what format.
func (f *exportFlags) placeOf() (definition.Output, error) {
	out := definition.Output{Path: f.output, Format: f.format, Profile: "strict", Partition: definition.PartitionNone}
	if f.format != "" {
		if _, ok := formatBy(named(f.format)); !ok {
			return out, fmt.Errorf("--format %q: give one of %s", f.format, strings.Join(formatNames(), ", "))
		}
	}
	if f.output == definition.StdoutPath || f.output == "" {
		out.Path = definition.StdoutPath
		if out.Format == "" {
			out.Format = "csv"
		}
		return out, nil
	}
	if err := f.checkS3(); err != nil {
		return out, err
	}
	if err := checkFile(f.output); err != nil {
		return out, err
	}
	var err error
	if out.Format, out.Compression, err = formatOf(f.output, f.format); err != nil {
		return out, err
	}
	if strings.Contains(f.output, "://") {
		out.Path, out.S3 = f.output, &f.s3
		return out, nil
	}
	out.Path, err = filepath.Abs(f.output)
	return out, err
}

// checkS3 checks the --s3 flags: they are for s3:// paths, and no address
// holds credentials.
func (f *exportFlags) checkS3() error {
	if f.s3.Endpoint == "" && f.s3.Region == "" && !f.s3.PathStyle {
		return nil
	}
	if !strings.HasPrefix(f.output, "s3://") {
		return errors.New("the --s3 flags are for -o s3://bucket/path")
	}
	if f.s3.Endpoint != "" && !definition.IsEndpoint(f.s3.Endpoint) {
		return errors.New("--s3-endpoint: give an address such as https://s3.example.com or http://127.0.0.1:9000; credentials come from the environment")
	}
	return nil
}

func checkFile(file string) error {
	scheme, rest, remote := strings.Cut(file, "://")
	bucket, key, _ := strings.Cut(rest, "/")
	switch {
	case remote && !slices.Contains(schemes(), scheme):
		return fmt.Errorf("-o %s: give a local path or s3://bucket/path", file)
	case strings.HasSuffix(file, "/"):
		return fmt.Errorf("-o %s is a folder; export writes one file, a definition writes datasets", file)
	case remote && (bucket == "" || key == "" || path.Clean("/"+key) != "/"+key):
		return fmt.Errorf("-o %s: write s3://bucket/path in its shortest form", file)
	case remote:
		return nil
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("-o %s is a folder; give the file's name too", file)
	}
	return nil
}

// formatOf tells a file's format and the codec around it, by its extensions
// and by --format, which must not contradict them: a file's name is what
// everybody else goes by.
func formatOf(file, flag string) (format, codec string, err error) {
	stem := file
	switch ext := path.Ext(file); ext {
	case ".gz":
		stem, codec = strings.TrimSuffix(file, ext), "gzip"
	case ".zst":
		stem, codec = strings.TrimSuffix(file, ext), "zstd"
	}
	f, known := formatBy(func(f load.Format) bool { return strings.HasSuffix(stem, f.Extension) })
	switch {
	case flag == "" && !known:
		return "", "", fmt.Errorf("-o %s: its extension names no format; use .csv .ndjson .json .parquet .arrow .xlsx, or give --format", file)
	case flag != "" && known && f.Name != flag:
		return "", "", fmt.Errorf("-o %s is a name for %s, and --format says %s; change one of them", file, f.Name, flag)
	case flag != "":
		f, _ = formatBy(named(flag))
	}
	if codec != "" && !f.Text {
		return "", "", fmt.Errorf("-o %s: a %s file is compressed inside, not around; leave %s out", file, f.Name, path.Ext(file))
	}
	return f.Name, codec, nil
}

func formatBy(is func(load.Format) bool) (load.Format, bool) {
	for _, f := range tables().Formats {
		if is(f) {
			return f, true
		}
	}
	return load.Format{}, false
}

func named(name string) func(load.Format) bool {
	return func(f load.Format) bool { return f.Name == name }
}

func formatNames() []string {
	formats := tables().Formats
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.Name
	}
	return names
}
