package definition

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/schemas"
)

// Definition is a pipeline definition, checked and complete: every default is
// filled in and every path is absolute. Its wall-clock times are those of the
// account's zone; their location is time.UTC all the same, as in extract.Window.
type Definition struct {
	File    string   // where it was read from, "" for one that a command made
	Given   []string `json:"-"` // the command line's flags that each command for it repeats; see Command
	Name    string
	Source  Source
	Forms   []string // names or globs
	Exclude []string // names or globs; see WantsForm
	State   string   // of budgets and checkpoints: a folder, or an address such as s3://bucket/prefix/
	StateS3 *S3      // nil for the SDK's own settings
	// Variables are the names in vars and of every ${var:…}, in alphabetical order.
	Variables []string `json:"-"`
	Labels    bool     // columns are named after labels (names: label) instead of ids
	Extract   Extract
	Schema    *schemas.Schema // nil: a run infers it
	Outputs   []Output
}

// Source is the service's account that results are read from.
type Source struct {
	BaseURL   string
	API       API // "" is APIv1
	Account   string
	Key       transport.Secret
	Zone      *time.Location // the account's zone
	AllowHTTP bool           // plain HTTP to a host that is not loopback
	Requests  Requests
}

// API is the generation of the service that an account is asked by.
type API string

// The generations. APIAuto asks the service once which one it speaks.
const (
	APIv1   API = "v1" // XML, service-spec.md
	APIv2   API = "v2" // JSON, service-v2.md
	APIAuto API = "auto"
)

// Limits of API v2 for each account (service-v2.md, section 2). They are the budgets of
// a source that may be asked by it and sets no budget.
const (
	DefaultV2PerMinute = 50
	DefaultV2PerDay    = 10_000
)

// Requests bounds what a run asks of the service.
type Requests struct {
	Concurrency int           // most requests under way at once
	PerMinute   int           // 0: no budget
	PerDay      int           // 0: no budget
	Timeout     time.Duration // of one request
	Retries     int           // of one request, after the first try
	MaxRequests int           // most requests that the plan of one form may need; 0: no bound
	// Patience bounds how long one request is tried, and how long a run waits for a
	// service that is away. 0: two minutes, or 30 seconds before the first connection.
	Patience time.Duration
}

// Extract says which results are read and how.
type Extract struct {
	From, To     time.Time // half-open; a zero From is no lower bound, a zero To is now less Settle
	Settle       time.Duration
	Window       extract.Step
	Incremental  bool
	Lookback     time.Duration
	Changes      Changes
	View         string
	CustomLabels string
	Search       extract.Search
	Verify       bool
	Proof        bool // a run that does not prove what it promises fails
}

// Changes says how an incremental run finds what changed. It is empty, which
// means ChangesAuto, in a definition that was not read from a file.
type Changes string

// The ways to find what changed.
const (
	ChangesAuto     Changes = "auto"     // asks the service, and reads the lookback where it cannot tell
	ChangesLookback Changes = "lookback" // reads the lookback again
)

// Partition is how a dataset is divided into folders.
type Partition string

// The partitions of a dataset.
const (
	PartitionNone  Partition = "none"
	PartitionDay   Partition = "day"
	PartitionMonth Partition = "month"
	PartitionYear  Partition = "year"
)

// Output is one place that the results are written to.
type Output struct {
	Path        string // absolute, with {form} and so on unexpanded; ends with a slash for a dataset
	Format      string // name of a load.Format
	Compression string // codec: "", none, gzip, zstd, snappy; around text formats, inside the others
	Profile     string // CSV profile: strict or excel
	Partition   Partition
	NoCodebook  bool      // no codebook is written beside the data
	NoManifest  bool      // no manifest is written beside a single file
	S3          *S3       // nil: the SDK's defaults, or no S3 path
	Database    *Database // nil: no table of a database
	// Select holds the sources of the only columns that are written, in their order. It
	// is nil for all columns.
	Select []schemas.Source
	// Explode is set for child outputs only. It is the list column that has a row
	// for each of its elements there. See Definition.Explode.
	Explode schemas.Source
}

// S3 is what an s3:// path needs beyond the SDK's defaults.
type S3 struct {
	Endpoint      string // URL of the server, "" for AWS
	Region        string
	PathStyle     bool   // bucket in the path instead of the host name
	SSE           string // "", s3 or kms
	KMSKeyID      string // with kms: "" for the account's default key
	PartSize      int64  // bytes, 0 for the destination's default
	PartsInFlight int    // of one upload, 0 for the destination's default
}

// StdoutPath is the path of the output that goes to standard output.
const StdoutPath = "-"

// PathValues are what replaces the placeholders in the paths of a form's outputs.
func (d *Definition) PathValues(form, runID string) PathValues {
	return PathValues{Form: form, Pipeline: d.Name, Account: d.Source.Account, RunID: runID}
}

// FinestUnit is the smallest unit that an output is partitioned by. Every boundary of a larger
// unit is one of the smaller unit too.
func (d *Definition) FinestUnit() extract.Unit {
	finest := extract.UnitNone
	for _, out := range d.Outputs {
		if unit := out.Partition.Unit(); finest == extract.UnitNone || unit != extract.UnitNone && unit < finest {
			finest = unit
		}
	}
	return finest
}

// Unit is the unit of the calendar that the partition divides by.
func (p Partition) Unit() extract.Unit {
	return map[Partition]extract.Unit{PartitionDay: extract.UnitDay, PartitionMonth: extract.UnitMonth, PartitionYear: extract.UnitYear}[p]
}

// HasFiles tells whether any output is a single file.
func (d *Definition) HasFiles() bool {
	return slices.ContainsFunc(d.Outputs, func(o Output) bool { return !o.Dataset() })
}

// HasUndivided tells whether an output is a dataset without partitions. Such a dataset
// ends where counts show no further results, so that its objects stay as they are.
func (d *Definition) HasUndivided() bool {
	return slices.ContainsFunc(d.Outputs, func(o Output) bool { return o.Dataset() && o.Partition.Unit() == extract.UnitNone })
}

// Dataset tells whether the output is a dataset of parts rather than one file.
func (o Output) Dataset() bool { return strings.HasSuffix(o.Path, "/") }

// Lasting tells whether each run writes the output to the same place. If so, its lease keeps
// other runs away.
func (o Output) Lasting() bool {
	return o.Path != StdoutPath && !strings.Contains(o.Path, "{run_id}")
}

// Fingerprint is equal for definitions that read the same rows of a form. It
// holds the whole definition and its schema, except for the keys that change no
// row. A key that is added to definitions counts unless it is left out here.
func (d *Definition) Fingerprint() (string, error) {
	reads := *d
	reads.File, reads.Outputs, reads.Forms, reads.Exclude, reads.State, reads.StateS3 = "", nil, nil, nil, "", nil
	reads.Source.Requests, reads.Source.Key, reads.Source.API = Requests{}, transport.Secret{}, ""
	e := &reads.Extract
	e.From, e.To, e.Window, e.Incremental, e.Lookback, e.Verify = time.Time{}, time.Time{}, extract.Step{}, false, 0, false
	e.Changes = ""
	data, err := json.Marshal(struct {
		Definition
		Zone string // which JSON knows by its name alone
	}{reads, d.Source.Zone.String()})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// Command returns a command of formetl for this definition, such as "run", in words that a
// shell takes as they are. It repeats the flags that the definition was given with (Given),
// because without them it would mean another one, or none. The key is never shown.
// DEFINITION stands for one that was read from no file.
func (d *Definition) Command(command string, flags ...string) string {
	words := []string{"formetl", command, ShellWord(cmp.Or(d.File, "DEFINITION"))}
	for _, given := range d.Given {
		words = append(words, ShellWord(given))
	}
	for _, f := range flags {
		if f != "" {
			words = append(words, f)
		}
	}
	return d.Source.Key.Redact(strings.Join(words, " "))
}

// ShellWord quotes a word where the system's shell would take it for something else.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if word != "" && strings.TrimLeftFunc(word, plain) == "" {
		return word
	}
	if runtime.GOOS == "windows" {
		return `"` + word + `"`
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
