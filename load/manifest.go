package load

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Names of the small objects beside the data.
const (
	ManifestName = "_manifest.json" // the manifest of a dataset, which lists its parts
	SuccessName  = "_SUCCESS"       // says that the dataset is complete; holds its last run's id
)

// FileManifestName is the name of the manifest of a single file.
func FileManifestName(file string) string { return file + ".manifest.json" }

// What belongs to a part lies in folders beside the manifest and is no data: the set
// of the ids of its results, by which later runs find results that moved to another
// window, and its dead letters. Each object is named by its own SHA-256, which the
// manifest holds for the part, so equal ones share one object.
const (
	RejectsFolder    = "_rejects"
	rejectsExtension = ".jsonl"
	idsFolder        = "_ids"
	idsExtension     = ".ids"
)

// IDsName is the name of the id set that has this SHA-256, given in hex.
func IDsName(sha256 string) string { return idsFolder + "/" + sha256 + idsExtension }

// RejectsName is the name of the dead letters of a part, which have this SHA-256 in hex.
func RejectsName(sha256 string) string { return RejectsFolder + "/" + sha256 + rejectsExtension }

// FileRejectsName is the name of the dead letters of a single file.
func FileRejectsName(file string) string { return file + ".rejects.jsonl" }

// Manifest lists the parts of a dataset, or a single file, and says what is
// known about them. Its keys and their order are part of formetl's contract
// with readers.
type Manifest struct {
	Format    string    `json:"format"`
	Pipeline  string    `json:"pipeline"`
	Form      string    `json:"form"`
	RunID     string    `json:"run_id"`
	CreatedAt time.Time `json:"created_at"`
	Range     Range     `json:"range"` // the span of time whose results the run read
	// Watermark is the time up to which results were read without a gap. It is
	// null for a single file and after a reset.
	Watermark WallTime `json:"watermark"`
	// Names says how columns without a declared name were named, by id or
	// label. It is "" if all names were declared.
	Names string `json:"names,omitempty"`
	// Source says where the results come from. A run with another source does
	// not write to the dataset.
	Source Source `json:"source"`
	// Profile is the CSV profile, "" for strict.
	Profile string   `json:"profile,omitempty"`
	Schema  []Column `json:"schema"`
	// Ignored are the sources of the form's fields that have no column (unknown: ignore).
	Ignored []string `json:"ignored,omitempty"`
	// Files tells that the run also wrote a list of the uploaded files.
	Files    bool   `json:"files,omitempty"`
	Parts    []Part `json:"parts"`
	Rows     int64  `json:"rows"` // number of rows of all parts
	Rejected int64  `json:"rejected"`
	// Generation is the highest generation that a part of the dataset ever had, so that no later
	// part gets the name of one that is gone. Commit.Record sets it. It is 0 for a single file.
	Generation int      `json:"generation,omitempty"`
	Verified   Verified `json:"verified"`
	// Changes says how the run found which results had changed. It is nil for a single file, where
	// no run has looked for changes yet, and after a reset.
	Changes  *Changes `json:"changes,omitempty"`
	Requests Requests `json:"requests"`
}

// Source says from which account the results come, and which of the account's results they
// are.
type Source struct {
	Account  string `json:"account"`
	Timezone string `json:"timezone"`         // IANA name of the account's zone
	View     string `json:"view,omitempty"`   // id of the Results View
	Search   string `json:"search,omitempty"` // search criteria, in words
}

// Range is a half-open span of wall-clock time; null is no bound.
type Range struct {
	From WallTime `json:"from"`
	To   WallTime `json:"to"`
}

// Span is the range between two wall-clock times; the zero time is no bound.
func Span(from, to time.Time) Range { return Range{From: Wall(from), To: Wall(to)} }

// Column describes a column of the data in the manifest.
type Column struct {
	Name  string `json:"name"`
	Type  string `json:"type"`  // the column's type, spelled as in a schema file
	From  string `json:"from"`  // what fills the column, as package schemas spells it
	Label string `json:"label"` // the column's heading, "" if unknown
	// PII is the column's rule for personal data, "" for none. The rule hmac is followed by the id
	// of its key: hmac(1f2e3d4c).
	PII string `json:"pii,omitempty"`
	// ListAs is how CSV shows a column of lists; "" means joined.
	ListAs string `json:"list_as,omitempty"`
	// Explode tells whether the list has a child output of its own.
	Explode bool `json:"explode,omitempty"`
	// Choices are the values that each have a column of their own in CSV
	// (list_as: columns), in order. For a table they are those that its comment names.
	Choices []string `json:"choices,omitempty"`
	// ItemType and Index are about the form, not the data: an item's type and its place on the
	// form.
	ItemType string `json:"item_type,omitempty"`
	Index    int    `json:"index,omitempty"`
	// Gone marks an item that the form's headings listed before and no longer
	// list.
	Gone bool `json:"gone,omitempty"`
	// Joined tells that several values were joined into a text of the column, which runs report once.
	Joined bool `json:"joined,omitempty"`
}

// Part is a data object of a dataset, or the single file itself.
type Part struct {
	Path string   `json:"path"` // the part's object name, relative to the destination
	From WallTime `json:"from"` // the part's window; null is no bound
	To   WallTime `json:"to"`
	Rows int64    `json:"rows"`
	// Rejected is the number of rejected results in the part's window. Of several parts of one
	// window, the first part has the number.
	Rejected int64  `json:"rejected"`
	MinID    int64  `json:"min_id"` // lowest result id; null in JSON if Rows is 0
	MaxID    int64  `json:"max_id"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"` // of the part's bytes, in hex
	// IDs is the SHA-256 of the part's id set in hex, "" if it has none. See
	// IDsName.
	IDs string `json:"ids,omitempty"`
	// Letters is the SHA-256 of the part's dead letters in hex, "" if it has none. See
	// RejectsName. Of several parts of one window, the first has them.
	Letters string `json:"letters,omitempty"`
	// Undated marks the part of results without a date. Its From and To are
	// null.
	Undated bool `json:"undated,omitempty"`
	// Unfetched tells that uploaded files of the part's results could not be fetched, and that the
	// next run asks for them again.
	Unfetched bool `json:"unfetched,omitempty"`
}

// beside returns the names of the part's id set and of its dead letters, if it has any.
func (p Part) beside() (names []string) {
	if p.IDs != "" {
		names = append(names, IDsName(p.IDs))
	}
	if p.Letters != "" {
		names = append(names, RejectsName(p.Letters))
	}
	return names
}

// names returns the names of the manifest's parts, and of their id sets and dead letters.
// There are none if the manifest is nil.
func (m *Manifest) names() map[string]bool {
	names := map[string]bool{}
	if m == nil {
		return names
	}
	for _, p := range m.Parts {
		names[p.Path] = true
		for _, name := range p.beside() {
			names[name] = true
		}
	}
	return names
}

// Covers returns the range from the first window of the parts to the last one, and whether
// there are parts of results without a date. For a manifest without parts it returns the range
// that the manifest's run read.
func (m *Manifest) Covers() (r Range, undated bool) {
	dated := false
	for _, p := range m.Parts {
		switch span := (Range{From: p.From, To: p.To}); {
		case p.Undated:
			undated = true
		case !dated:
			r, dated = span, true
		default:
			r = union(r, span)
		}
	}
	if !dated {
		r = m.Range
	}
	return r, undated
}

// Verified compares the number of results that the service counted with the number that was
// read.
type Verified struct {
	Counted   int64 `json:"counted"`
	Extracted int64 `json:"extracted"` // number of results that were read: rows and rejects
	Match     bool  `json:"match"`
	// Method is MethodChanges, MethodCounts, MethodPagination or MethodRead, the strongest
	// proof first. By MethodChanges no result that changed while it was read is missing.
	// Method is "" where the definition wants no counts.
	Method string `json:"method,omitempty"`
	// Reason says why counts were not compared, "" if they were.
	Reason string `json:"reason,omitempty"`
	// Unproven says what the run did not prove of its results, and why. It is "" if it proved
	// that none is missing and none is there twice.
	Unproven string `json:"unproven,omitempty"`
}

// Requests counts the requests of a run to the service.
type Requests struct {
	Results int64 `json:"results"`
	Count   int64 `json:"count"`
	Files   int64 `json:"files,omitempty"` // uploaded files
	Retries int64 `json:"retries"`
}

// All returns the number of all requests to the service, retries included.
func (r Requests) All() int64 { return r.Results + r.Count + r.Files + r.Retries }

// ManifestError means that an object with a manifest's name is damaged or is no
// manifest of formetl.
type ManifestError struct {
	Name    string
	Problem string
	Err     error // why the JSON cannot be parsed, nil if it is valid
}

// Error says that the object is no manifest of formetl, and why.
func (e *ManifestError) Error() string {
	s := fmt.Sprintf("%s is damaged, or not from this version of formetl: %s", e.Name, e.Problem)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the error of the JSON, nil if the JSON is valid.
func (e *ManifestError) Unwrap() error { return e.Err }

// ExitCode is 73: the output cannot be written where something lies that is not formetl's.
func (e *ManifestError) ExitCode() int { return 73 }

// MarshalJSON returns the part as JSON. The lowest and highest result id of a part without
// rows are null.
func (p Part) MarshalJSON() ([]byte, error) {
	type plain Part // without this method
	if p.Rows > 0 {
		return json.Marshal(plain(p))
	}
	p.MinID, p.MaxID = 0, 0
	data, err := json.Marshal(plain(p))
	return bytes.Replace(data, []byte(`"min_id":0,"max_id":0`), []byte(`"min_id":null,"max_id":null`), 1), err
}

// UnmarshalJSON reads a part that MarshalJSON wrote. A part with rows must have a lowest and a
// highest id.
func (p *Part) UnmarshalJSON(data []byte) error {
	type plain Part // without this method

	*p = Part{MinID: -1, MaxID: -1} // no result has such an id
	if err := json.Unmarshal(data, (*plain)(p)); err != nil {
		return err
	}
	if p.Rows > 0 && (p.MinID < 0 || p.MaxID < 0) {
		return fmt.Errorf("the part %q has rows, but no lowest and highest id", p.Path)
	}
	if p.Rows <= 0 {
		p.MinID, p.MaxID = 0, 0
	}
	return nil
}

// Encode returns the manifest as JSON. It is indented, has its keys in a fixed
// order and its parts sorted, and ends with a newline. Equal manifests give
// equal bytes.
func (m Manifest) Encode() ([]byte, error) {
	// Empty lists are [] and not null, so that readers need no check.
	m.Parts = append([]Part{}, m.Parts...)
	SortParts(m.Parts)
	m.Schema = append([]Column{}, m.Schema...)
	m.CreatedAt = m.CreatedAt.UTC().Truncate(time.Second)
	if m.Changes != nil {
		changes := *m.Changes
		changes.WitnessAt = changes.WitnessAt.UTC().Truncate(time.Second)
		m.Changes = &changes
	}
	data, err := json.Marshal(m)
	// The manifest's bytes must stay the same when it is decoded and encoded again. They would not
	// with a text that is no UTF-8: it is decoded as another text.
	var same Manifest
	if err == nil {
		err = json.Unmarshal(data, &same)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // labels are for people, so < and > stay readable
	enc.SetIndent("", "  ")
	if err == nil {
		err = enc.Encode(same)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot encode the manifest of run %s: %w", m.RunID, err)
	}
	return b.Bytes(), nil
}

// SortParts sorts parts by window and then by path. Results without a date come
// last, and a missing end of a window comes after every other.
func SortParts(parts []Part) {
	slices.SortFunc(parts, func(a, b Part) int {
		return cmp.Or(falseFirst(a.Undated, b.Undated), a.From.Compare(b.From.Time),
			falseFirst(a.To.IsZero(), b.To.IsZero()), a.To.Compare(b.To.Time), cmp.Compare(a.Path, b.Path))
	})
}

// falseFirst compares two truth values.
func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// ReadManifest reads and checks the manifest of the given name. version is for a commit's
// Base. If there is no manifest, the error wraps ErrNotExist and version is NoVersion. If the
// manifest is damaged or not formetl's, the error is a *ManifestError.
func ReadManifest(ctx context.Context, s Store, name string) (m *Manifest, version string, err error) {
	data, version, err := s.Get(ctx, name)
	if err != nil {
		return nil, NoVersion, err
	}
	m, err = DecodeManifest(data)
	if damaged, ok := errors.AsType[*ManifestError](err); ok {
		damaged.Name = name
		return nil, version, err
	}
	return m, version, nil
}

// ResetWatermark sets the watermark of the dataset at s back to an earlier time. The zero time
// removes the watermark, and the next incremental run begins like the first; what is known of
// changes is removed too. With another time that knowledge stays, because changes from before
// that time would be lost otherwise. ResetWatermark returns the previous watermark. It changes
// nothing but the manifest.
//
// The caller holds the lease and has called Recover. The error wraps
// ErrConflict if a commit is recorded or someone else writes the manifest
// meanwhile. It wraps ErrNotExist if there is no manifest. It is a
// *ManifestError if the manifest is damaged, and an ErrUsage if the time
// is later than the present watermark. An unfinished run is not resumed after a
// reset, because it began from another manifest.
func ResetWatermark(ctx context.Context, s Store, to WallTime) (before WallTime, err error) {
	if c, err := readRecord(ctx, s, recordName("")); err != nil {
		return WallTime{}, err
	} else if c != nil {
		return WallTime{}, c.busy()
	}
	m, version, err := ReadManifest(ctx, s, ManifestName)
	if err != nil {
		return WallTime{}, err
	}
	before = m.Watermark
	if changed, err := m.ResetWatermark(to); err != nil || !changed {
		return before, err
	}
	data, err := m.Encode()
	if err != nil {
		return before, err
	}
	return before, s.Put(ctx, ManifestName, data, version)
}

// ResetWatermark sets the manifest's watermark back, and tells whether it was another one. It
// is an ErrUsage to set a later watermark, because no run would read the results in between.
func (m *Manifest) ResetWatermark(to WallTime) (changed bool, err error) {
	switch before := m.Watermark; {
	case to.Equal(before.Time):
		return false, nil
	case !to.IsZero() && (before.IsZero() || to.After(before.Time)):
		known := "it has no watermark yet, so that the results before that time would be missing"
		if !before.IsZero() {
			known = "results were read only up to " + before.String() + ", so that those after it would be missing"
		}
		return false, &Error{
			Kind: ErrUsage, Op: "set", Path: "the watermark of the dataset to " + to.String(), Remedy: "give an earlier time, or leave out --watermark, so that the next run begins like the first",
			Err: errors.New(known),
		}
	}
	if m.Watermark = Wall(to.Time); to.IsZero() {
		m.Changes = nil
	}
	return true, nil
}

// DecodeManifest reads a manifest and checks that it is consistent. Unknown keys are ignored.
// The error is a *ManifestError.
func DecodeManifest(data []byte) (*Manifest, error) {
	var m Manifest
	if err := decodeOne(json.NewDecoder(bytes.NewReader(data)), &m); err != nil {
		return nil, &ManifestError{Name: ManifestName, Problem: "it cannot be read", Err: err}
	}
	if problem := m.problem(); problem != "" {
		return nil, &ManifestError{Name: ManifestName, Problem: problem}
	}
	return &m, nil
}

// decodeOne decodes a text that is exactly one JSON value into v, which is a pointer.
func decodeOne(dec *json.Decoder, v any) error {
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something after its end")
	}
	return nil
}

// problem says in which way a manifest is inconsistent, "" if it is consistent.
func (m *Manifest) problem() string {
	switch {
	case m.Format == "":
		return "it has no format"
	case m.RunID == "":
		return "it has no run id"
	case m.Parts == nil:
		return "it lists no parts"
	}
	var rows int64
	seen := make(map[string]bool, len(m.Parts))
	for _, p := range m.Parts {
		if seen[p.Path] {
			return fmt.Sprintf("it lists the part %q twice", p.Path)
		}
		if problem := p.problem(); problem != "" {
			return fmt.Sprintf("its part %q %s", p.Path, problem)
		}
		seen[p.Path] = true
		rows += p.Rows
	}
	if rows != m.Rows {
		return fmt.Sprintf("its parts have %d rows together, but it says %d", rows, m.Rows)
	}
	if problem := m.Changes.problem(); problem != "" {
		return "its list of changes " + problem
	}
	return ""
}

func (p *Part) problem() string {
	if CheckObjectName(p.Path) != nil {
		return "is not named like a part"
	}
	switch {
	case p.Rows < 0 || p.Rejected < 0 || p.Bytes < 0:
		return "has a negative size"
	case p.Rows > 0 && p.MinID > p.MaxID:
		return "has a lowest id above the highest"
	case !isSHA256(p.SHA256):
		return "has no sha256"
	case p.IDs != "" && !isSHA256(p.IDs):
		return "names its list of ids by something that is no sha256"
	case p.Letters != "" && !isSHA256(p.Letters):
		return "names its dead letters by something that is no sha256"
	case !p.From.IsZero() && !p.To.IsZero() && !p.From.Before(p.To.Time):
		return "ends before it begins"
	case p.Undated && (!p.From.IsZero() || !p.To.IsZero()):
		return "holds results without a date, but has dates"
	}
	if key, err := ParsePartName(p.Path); err == nil && (key.Undated != p.Undated || !key.From.Equal(p.From.Time) || !key.To.Equal(p.To.Time)) {
		return "has other dates than its name says"
	}
	return ""
}

// isSHA256 tells whether s is a SHA-256 in lower-case hex.
func isSHA256(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}
