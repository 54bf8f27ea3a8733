package definition

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/formetl/formetl/schemas"
)

// Files says where the uploaded files of results are stored. Each file lies under
// RESULT_ID/ITEM-N-NAME in the folder, and a child output of each file and dataset, called files,
// has a row for each of them (package uploads).
type Files struct {
	Path        string // absolute, with placeholders such as {form}; ends with a slash
	S3          *S3    // as in Output
	MaxBytes    int64  // larger files are not stored
	Concurrency int    // most files fetched at once; requests.concurrency bounds them too
	Hosts       []string
	// KeepDeleted keeps the files of results that were deleted.
	KeepDeleted bool
	// Table is the path of the one CSV file that has the rows of files. "" means a child output
	// beside each output.
	Table string
}

// DefaultMaxFile is the most bytes of an uploaded file where a definition sets no max_bytes.
const DefaultMaxFile = 100 << 20

// Output returns the folder of files as an output, which tells how to open it. In a bucket each
// file is sent part by part, and parts are small, where s3: says nothing else, because several files
// are sent at once.
func (f *Files) Output() Output {
	out := Output{Path: f.Path, NoCodebook: true, S3: f.S3}
	if OnS3(f.Path) {
		s3 := *cmp.Or(f.S3, &S3{})
		s3.PartSize, s3.PartsInFlight = cmp.Or(s3.PartSize, minPartSize), cmp.Or(s3.PartsInFlight, 1)
		out.S3 = &s3
	}
	return out
}

// WithFiles returns the outputs, and behind them the folder of uploaded files if there is one.
func (d *Definition) WithFiles() []Output {
	if d.Files == nil {
		return d.Outputs
	}
	return append(slices.Clone(d.Outputs), d.Files.Output())
}

// readFiles reads files:, the folder that uploaded files are stored in.
func (r *reader) readFiles(v value) {
	place := placedOutput{}
	f := &Files{MaxBytes: DefaultMaxFile, Concurrency: r.def.Source.Requests.Concurrency}
	v.Section(
		required("path", func(v value) { r.readPath(v, &place) }),
		optional("s3", func(v value) { f.S3 = readS3(v, place.Path) }),
		optional("max_bytes", intoParsed(&f.MaxBytes, ParseSize, "")),
		optional("concurrency", intoInteger(&f.Concurrency, 1, maxConcurrency)),
		optional("keep_deleted", intoBoolean(&f.KeepDeleted)),
		optional("hosts", func(v value) {
			for _, e := range v.List() {
				var host string
				if intoParsed(&host, ParseHost, "")(e); host != "" {
					f.Hosts = append(f.Hosts, host)
				}
			}
		}),
	)
	if place.Path == "" {
		return
	}
	switch {
	case !strings.HasSuffix(place.Path, "/"):
		place.at.Fail("end the path with a slash", "uploaded files are stored in a folder")
	case place.Path == "/":
		place.at.Fail("write a folder of its own, such as files/", "uploaded files cannot be stored in the root folder")
	case strings.Contains(place.Path, "{run_id}"):
		place.at.Fail("write a path without {run_id}", "each uploaded file is fetched only once, so its place must be the same in every run")
	default:
		f.Path, r.def.Files, r.files = place.Path, f, place
	}
}

// ParseHost reads the name of a host, or host:port, from which files may come.
func ParseHost(text string) (string, error) {
	if u, err := url.Parse("https://" + text); err != nil || u.Host != text || u.Hostname() == "" || strings.ContainsAny(text, "*/@?#") {
		return "", fmt.Errorf("%s is not the name of a host; write one such as files.example.com", Quote(text))
	}
	return text, nil
}

// ParseSize reads a number of bytes: 50MB, 20MiB, 64kB or 1048576.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "BkKMGi ")
	n, err := strconv.ParseUint(digits, 10, 32)
	units := map[string]int64{"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
	unit, known := units[strings.TrimSpace(text[len(digits):])]
	if err != nil || !known || n == 0 {
		return 0, fmt.Errorf("%s is not a size; write one such as 50MB or 20MiB", Quote(text))
	}
	return int64(n) * unit, nil //nolint:gosec // n has 32 bits, so it fits
}

// filesSource is the source of the child output that lists uploaded files.
func filesSource() schemas.Source { return schemas.Source{Kind: schemas.FromFile} }

// FileRows returns an output that lists the uploaded files in place of the results of out.
func FileRows(out Output) Output {
	out.Explode = filesSource()
	return out
}

// HasFileRows tells whether the output lists uploaded files.
func (o Output) HasFileRows() bool { return o.Explode == filesSource() }
