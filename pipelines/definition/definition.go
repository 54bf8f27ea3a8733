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
// account's zone, though their location is time.UTC, as in extract.Window.
type Definition struct {
	File    string   // path of the file with the definition, "" if a command made the definition
	Given   []string `json:"-"` // flags given on the command line, which Command repeats
	Name    string
	Source  Source
	Forms   []string // names of forms, or globs
	Exclude []string // names of forms that Forms matches and no run reads, or globs; see WantsForm
	State   string   // folder or address (s3://bucket/prefix/) of budgets and checkpoints
	StateS3 *S3      // settings of S3 for State; nil for those of the SDK
	// Variables are the names of variables under vars and in every ${var:NAME}, in alphabetical
	// order.
	Variables []string       `json:"-"`
	Names     schemas.Naming // what columns are named after where no schema names them
	Extract   Extract
	Schema    *schemas.Schema // columns of the results; nil: a run infers them
	Files     *Files          // where uploaded files are stored; nil: nowhere
	Outputs   []Output
	// Warnings are what most likely is a mistake in the file, though runs go by it.
	Warnings []Problem `json:"-"`
	perForm  *perForm  // what single forms have of their own, see For; nil if none has
}

// Source is the service's account that results are read from.
type Source struct {
	BaseURL   string
	API       API // generation of the service; "" is APIv1
	Account   string
	Key       transport.Secret
	Zone      *time.Location // the account's time zone
	AllowHTTP bool           // BaseURL may be plain http:// on a host that is not loopback
	Requests  Requests
}

// API is the generation of the service's interface by which formetl asks for an account's results.
type API string

// The generations of the service's interface. With APIAuto formetl asks the service once which
// generation it speaks.
const (
	APIv1   API = "v1" // answers in XML, described in service-spec.md
	APIv2   API = "v2" // answers in JSON, described in service-v2.md
	APIAuto API = "auto"
)

// Most requests that API v2 answers for each account (service-v2.md, section 2). They are the
// budgets of a source that may be asked by API v2 and sets no budget itself.
const (
	DefaultV2PerMinute = 50
	DefaultV2PerDay    = 10_000
)

// Requests bounds what a run asks of the service.
type Requests struct {
	Concurrency int           // most requests under way at once
	PerMinute   int           // most requests in a minute; 0: no budget
	PerDay      int           // most requests in 24 hours; 0: no budget
	OwnBudgets  bool          // the user set PerMinute or PerDay; otherwise see Source.SetAPI
	Timeout     time.Duration // how long one try of a request may take
	Retries     int           // most tries of one request after the first
	MaxRequests int           // most requests that the plan of one form may need; 0: no bound
	// Patience bounds how long one request is tried, and how long a run waits for a
	// service that does not answer. 0: two minutes, or 30 seconds before the first connection.
	Patience time.Duration
}

// Extract says which results are read and how.
type Extract struct {
	From, To     time.Time // half-open range, as it was when the definition was read; zero From: no lower bound, zero To: now less Settle
	Settle       time.Duration
	Window       extract.Period
	Incremental  bool
	Lookback     time.Duration
	Changes      Changes
	View         string
	CustomLabels string
	Search       extract.Search
	Verify       bool
	Proof        bool // verify: required; a run fails that cannot prove that it read every result
}

// Changes says how an incremental run finds the results that changed. In a definition that was
// not read from a file it is "", which means ChangesAuto.
type Changes string

// The ways to find the results that changed.
const (
	ChangesAuto     Changes = "auto"     // ask the service what changed; if it cannot tell, do as for "lookback"
	ChangesLookback Changes = "lookback" // read the lookback again, and do not ask the service
)

// Partition is the unit of time by which a dataset is divided into folders.
type Partition string

// The units by which a dataset is divided into folders; PartitionNone is one folder for all.
const (
	PartitionNone  Partition = "none"
	PartitionDay   Partition = "day"
	PartitionMonth Partition = "month"
	PartitionYear  Partition = "year"
)

// Output is one place that the results are written to.
type Output struct {
	Path        string // absolute, with its placeholders such as {form}; a dataset's ends with a slash
	Format      string // name of a load.Format
	Compression string // codec: "", none, gzip, zstd, snappy; around text formats, inside binary ones
	Profile     string // CSV profile: strict or excel
	Partition   Partition
	NoCodebook  bool      // no codebook is written beside the data
	NoManifest  bool      // no manifest is written beside a single file
	S3          *S3       // settings of S3; nil: the SDK's defaults, or the path is not on S3
	Database    *Database // nil: the output is not a table of a database
	// Select holds the sources of the columns to write, in the order to write them. It is
	// nil for all columns.
	Select []schemas.Source
	// Explode is set for child outputs only: it is the source of the list column, of whose
	// elements each is a row of the child output, or the source of uploaded files
	// (HasFileRows). See Definition.Explode.
	Explode schemas.Source
}

// S3 is what an s3:// path needs beyond the SDK's defaults.
type S3 struct {
	Endpoint      string // URL of the server, "" for AWS
	Region        string
	PathStyle     bool   // URLs of objects have the bucket in their path, not in the host name
	SSE           string // encryption by the store: s3 or kms; "" asks for none
	KMSKeyID      string // key of sse: kms; "" for the account's default key
	PartSize      int64  // bytes of one part of a multipart upload, 0 for the destination's default
	PartsInFlight int    // most parts of one upload sent at once, 0 for the destination's default
}

// StdoutPath is the path of the output that goes to standard output.
const StdoutPath = "-"

// PathValues returns what replaces the placeholders in the paths of a form's outputs in a run.
func (d *Definition) PathValues(form, runID string) PathValues {
	return PathValues{Form: form, Pipeline: d.Name, Account: d.Source.Account, RunID: runID}
}

// FinestUnit is the smallest unit of the calendar by which an output is partitioned, UnitNone if
// no output is. Every boundary of a larger unit, such as a month, is a boundary of a smaller
// one, such as a day, too.
func (d *Definition) FinestUnit() extract.Unit {
	finest := extract.UnitNone
	for _, out := range d.Outputs {
		if unit := out.Partition.Unit(); finest == extract.UnitNone || unit != extract.UnitNone && unit < finest {
			finest = unit
		}
	}
	return finest
}

// Unit is the unit of the calendar that the partition divides by: UnitNone for PartitionNone.
func (p Partition) Unit() extract.Unit {
	return map[Partition]extract.Unit{PartitionDay: extract.UnitDay, PartitionMonth: extract.UnitMonth, PartitionYear: extract.UnitYear}[p]
}

// HasFiles tells whether any output is a single file.
func (d *Definition) HasFiles() bool {
	return slices.ContainsFunc(d.Outputs, func(o Output) bool { return !o.Dataset() })
}

// HasUndivided tells whether an output is a dataset without partitions. With such a dataset
// counts bound the windows that are read; without any, a full run may read its range as one window.
func (d *Definition) HasUndivided() bool {
	return slices.ContainsFunc(d.Outputs, func(o Output) bool { return o.Dataset() && o.Partition.Unit() == extract.UnitNone })
}

// Dataset tells whether the output is a dataset of parts rather than one file.
func (o Output) Dataset() bool { return strings.HasSuffix(o.Path, "/") }

// Lasting tells whether each run writes the output to the same place: its path is neither
// standard output nor holds {run_id}. If so, the output's lease keeps other runs away.
func (o Output) Lasting() bool {
	return o.Path != StdoutPath && !strings.Contains(o.Path, "{run_id}")
}

// Fingerprint is equal for definitions that read the same rows of a form. It is the SHA-256, in
// hex, of the whole definition and its schema, except for the keys that change no row. A key
// that is added to definitions counts unless Fingerprint leaves it out.
func (d *Definition) Fingerprint() (string, error) {
	reads := *d
	reads.File, reads.Outputs, reads.Forms, reads.Exclude, reads.State, reads.StateS3 = "", nil, nil, nil, "", nil
	reads.Files = nil
	reads.Source.Requests, reads.Source.Key, reads.Source.API = Requests{}, transport.Secret{}, ""
	e := &reads.Extract
	e.From, e.To, e.Window, e.Incremental, e.Lookback, e.Verify = time.Time{}, time.Time{}, extract.Period{}, false, 0, false
	e.Changes = ""
	data, err := json.Marshal(struct {
		Definition
		Zone string // name of the account's zone: a *time.Location is {} in JSON
	}{reads, d.Source.Zone.String()})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// Command returns a command line of formetl for this definition, such as "formetl run x.yaml",
// in words that a shell takes as they are. It repeats the flags that the definition was given
// with (Given), because without them the command would mean another definition, or none. The
// API key is never shown. Without a file the word DEFINITION stands for it, and for the command
// forms the flags that name service and account.
func (d *Definition) Command(command string, flags ...string) string {
	words := []string{"formetl", command, ShellWord(cmp.Or(d.File, "DEFINITION"))}
	if command == "forms" && d.File == "" {
		words = append(words[:2], "--base-url", ShellWord(d.Source.BaseURL), "--account", ShellWord(d.Source.Account))
		if d.Source.AllowHTTP {
			words = append(words, "--allow-http")
		}
	}
	for given := range slices.Chunk(d.Given, 2) { // a flag and its value
		if command == "forms" && (given[0] == "--form" || given[0] == "--state") {
			continue // it lists all forms, and keeps nothing
		}
		for _, word := range given {
			words = append(words, ShellWord(word))
		}
	}
	for _, f := range flags {
		if f != "" {
			words = append(words, f)
		}
	}
	return d.Source.Key.Redact(strings.Join(words, " "))
}

// ShellWord quotes a word of a command line if the system's shell would not take it literally.
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
