package load

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Names of the small objects beside the data.
const (
	ManifestName = "_manifest.json" // what to read in a dataset
	SuccessName  = "_SUCCESS"       // holds the id of the run that the dataset is whole with
)

// FileManifestName is where the manifest of a single file lies.
func FileManifestName(file string) string { return file + ".manifest.json" }

// RejectsFolder is the folder of the dead letters of a dataset.
const RejectsFolder = "_rejects"

// RejectsName is where a run's dead letters lie in a dataset.
func RejectsName(run string) string { return RejectsFolder + "/" + run + ".jsonl" }

// FileRejectsName is where the dead letters of a single file lie.
func FileRejectsName(file string) string { return file + ".rejects.jsonl" }

// Manifest says what a run left to be read, and what is known about it. Its
// keys are those of contract.md, in that order.
type Manifest struct {
	Format   string `json:"format"`
	Pipeline string `json:"pipeline"`
	Form     string `json:"form"`
	RunID    string `json:"run_id"`
	// Attempt is the id of the process's own run, where it committed under the
	// id of one that ended early.
	Attempt   string    `json:"attempt,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	Range     Range     `json:"range"` // what the run read
	// Watermark is the time up to which results were read, without a gap;
	// null where no run goes on from it, as with a single file, or where it was
	// reset.
	Watermark WallTime `json:"watermark"`
	// Names is how columns without a declared name were named, id or label; ""
	// where all were declared.
	Names string `json:"names,omitempty"`
	// Source says which results these are; a run that reads others does not
	// mix them in. nil in a manifest that nobody gave one.
	Source *Source `json:"source,omitempty"`
	// Profile is the CSV profile, "" for strict.
	Profile  string   `json:"profile,omitempty"`
	Schema   []Column `json:"schema"`
	Parts    []Part   `json:"parts"`
	Rows     int64    `json:"rows"` // of all parts
	Rejected int64    `json:"rejected"`
	Verified Verified `json:"verified"`
	Requests Requests `json:"requests"`
}

// Source is what results were read from, and which of them.
type Source struct {
	Account  string `json:"account"`
	Timezone string `json:"timezone"`         // IANA name of the account's zone
	View     string `json:"view,omitempty"`   // id of the Results View
	Search   string `json:"search,omitempty"` // criteria as people read them
}

// Range is a half-open span of wall-clock time; null is no bound.
type Range struct {
	From WallTime `json:"from"`
	To   WallTime `json:"to"`
}

// Column is a column of the data.
type Column struct {
	Name  string `json:"name"`
	Type  string `json:"type"`  // as in a schema file
	From  string `json:"from"`  // result_id, meta:ID or item:ID
	Label string `json:"label"` // the heading, "" where none is known
	// PII is the column's rule for personal data, "" for none; of hmac with the
	// id of its key: hmac(1f2e3d4c).
	PII string `json:"pii,omitempty"`
	// ListAs is how CSV shows the list, "" for joined.
	ListAs string `json:"list_as,omitempty"`
	// Explode tells that the list has a child output.
	Explode bool `json:"explode,omitempty"`
	// Choices are those that CSV has columns for (list_as: columns), in order.
	Choices []string `json:"choices,omitempty"`
	// What follows is about the form, not the data, and stands in the manifest
	// alone: an item's type and place on the form, and earlier labels, the
	// latest first.
	ItemType     string   `json:"item_type,omitempty"`
	Index        int      `json:"index,omitempty"`
	LabelsBefore []string `json:"labels_before,omitempty"`
	// Gone marks an item that the form's headings listed once and do not list
	// any more.
	Gone bool `json:"gone,omitempty"`
}

// Part is a data object of a dataset, or the single file itself.
type Part struct {
	Path   string   `json:"path"` // relative to the destination
	From   WallTime `json:"from"` // the part's window; null is no bound
	To     WallTime `json:"to"`
	Rows   int64    `json:"rows"`
	MinID  int64    `json:"min_id"` // of the results; null in JSON where Rows is 0
	MaxID  int64    `json:"max_id"`
	Bytes  int64    `json:"bytes"`
	SHA256 string   `json:"sha256"` // hex
	// IDs names the set of the part's ids, which lies beside the data: the hex
	// SHA-256 of the set. "" where there is none. See IDsName.
	IDs string `json:"ids,omitempty"`
	// Columns is the ColumnsDigest of those that the part has, "" where an
	// earlier formetl wrote it.
	Columns string `json:"columns,omitempty"`
	// Undated marks the part of results without a date, whose From and To are
	// null for that reason.
	Undated bool `json:"undated,omitempty"`
}

// Verified is what the service counted against what was read.
type Verified struct {
	Counted   int64 `json:"counted"`
	Extracted int64 `json:"extracted"` // rows and rejects
	Match     bool  `json:"match"`
	// Reason says why nothing was counted, "" where it was.
	Reason string `json:"reason,omitempty"`
}

// Requests counts what a run asked of the service.
type Requests struct {
	Results int64 `json:"results"`
	Count   int64 `json:"count"`
	Retries int64 `json:"retries"`
}

// ManifestError is an object in a manifest's place that is none of ours, or
// was damaged.
type ManifestError struct {
	Name    string
	Problem string
	Err     error // nil where the JSON is sound
}

// Error names the object, what is wrong with it and what to do.
func (e *ManifestError) Error() string {
	s := fmt.Sprintf("%s is not a manifest of formetl: %s", e.Name, e.Problem)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s + "; move it away, or choose another path, and run with --full"
}

// Unwrap gives the cause.
func (e *ManifestError) Unwrap() error { return e.Err }

// partJSON is a Part on disk: ids are null where there is no row to have one.
type partJSON struct {
	Path    string   `json:"path"`
	From    WallTime `json:"from"`
	To      WallTime `json:"to"`
	Rows    int64    `json:"rows"`
	MinID   *int64   `json:"min_id"`
	MaxID   *int64   `json:"max_id"`
	Bytes   int64    `json:"bytes"`
	SHA256  string   `json:"sha256"`
	IDs     string   `json:"ids,omitempty"`
	Columns string   `json:"columns,omitempty"`
	Undated bool     `json:"undated,omitempty"`
}

// MarshalJSON writes the ids of a part without rows as null.
func (p Part) MarshalJSON() ([]byte, error) {
	j := partJSON{Path: p.Path, From: p.From, To: p.To, Rows: p.Rows, Bytes: p.Bytes, SHA256: p.SHA256, IDs: p.IDs, Columns: p.Columns, Undated: p.Undated}
	if p.Rows > 0 {
		j.MinID, j.MaxID = &p.MinID, &p.MaxID
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes; a part that has rows has ids.
func (p *Part) UnmarshalJSON(data []byte) error {
	var j partJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*p = Part{Path: j.Path, From: j.From, To: j.To, Rows: j.Rows, Bytes: j.Bytes, SHA256: j.SHA256, IDs: j.IDs, Columns: j.Columns, Undated: j.Undated}
	if j.Rows > 0 {
		if j.MinID == nil || j.MaxID == nil {
			return fmt.Errorf("the part %q has rows and no ids", j.Path)
		}
		p.MinID, p.MaxID = *j.MinID, *j.MaxID
	}
	return nil
}

// Encode gives the manifest's bytes: indented, keys in order, a newline at
// the end, parts sorted, so that they do not depend on who finished first.
func (m Manifest) Encode() ([]byte, error) {
	// Empty lists are [] and not null: readers walk them without a check.
	m.Parts = append([]Part{}, m.Parts...)
	SortParts(m.Parts)
	m.Schema = append([]Column{}, m.Schema...)
	// Bytes must not depend on how often the manifest went through JSON.
	m.Pipeline, m.Form, m.Verified.Reason = valid(m.Pipeline), valid(m.Form), valid(m.Verified.Reason)
	for i, c := range m.Schema {
		m.Schema[i] = c.valid()
	}
	m.CreatedAt = m.CreatedAt.UTC().Truncate(time.Second)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // labels are for people
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("cannot encode the manifest of run %s: %w", m.RunID, err)
	}
	return b.Bytes(), nil
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// valid is the column with texts that JSON leaves as they are.
func (c Column) valid() Column {
	c.Name, c.Type, c.From, c.Label = valid(c.Name), valid(c.Type), valid(c.From), valid(c.Label)
	c.PII, c.ItemType, c.ListAs = valid(c.PII), valid(c.ItemType), valid(c.ListAs)
	c.Choices, c.LabelsBefore = validAll(c.Choices), validAll(c.LabelsBefore)
	return c
}

func validAll(list []string) []string {
	list = slices.Clone(list)
	for i, s := range list {
		list[i] = valid(s)
	}
	return list
}

// SortParts orders parts as they are to be read: by window, parts of one
// window by path, results without a date last.
func SortParts(parts []Part) {
	slices.SortFunc(parts, func(a, b Part) int {
		if a.Undated != b.Undated {
			if a.Undated {
				return 1
			}
			return -1
		}
		return cmp.Or(a.From.Compare(b.From.Time), compareEnds(a.To, b.To), cmp.Compare(a.Path, b.Path))
	})
}

// compareEnds compares two exclusive ends: no bound lies behind every other.
func compareEnds(a, b WallTime) int {
	if a.IsZero() != b.IsZero() {
		if a.IsZero() {
			return 1
		}
		return -1
	}
	return a.Compare(b.Time)
}

// ReadManifest reads and checks the manifest at name and gives its version
// for a commit's Base. A missing one is ErrNotExist with NoVersion; one that
// is not ours, or was damaged, is a *ManifestError.
func ReadManifest(ctx context.Context, s Store, name string) (m *Manifest, version string, err error) {
	data, version, err := s.Get(ctx, name)
	if err != nil {
		return nil, NoVersion, err
	}
	m, err = DecodeManifest(data)
	if err != nil {
		var me *ManifestError
		if errors.As(err, &me) {
			me.Name = name
		}
		return nil, NoVersion, err
	}
	return m, version, nil
}
