package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// LeftoverKind says what kind of object a run left behind, for messages.
type LeftoverKind string

// The kinds of leftovers.
const (
	StagedFile       LeftoverKind = "staged file"
	UnfinishedUpload LeftoverKind = "unfinished upload"
	Temporary        LeftoverKind = "temporary file"
	OrphanedIDs      LeftoverKind = "id set"       // an id set that no part of the dataset has
	OrphanedLetters  LeftoverKind = "dead letters" // dead letters that no part of the dataset has
	// UnlistedPart is an object that is named like a part but is in no manifest. It is kept
	// unless CleanOptions.Unlisted is set.
	UnlistedPart LeftoverKind = "unlisted part"
)

// Leftover is an object that a run staged or wrote beside the data, and that neither a manifest
// nor a recorded commit names.
type Leftover struct {
	Kind  LeftoverKind
	Run   string    // id of the run that made the leftover, "" if unknown
	Path  string    // the leftover's place, for messages: a path, or s3://… with the upload's id
	Bytes int64     // the leftover's size, -1 if unknown
	Since time.Time // when the leftover was begun or last written, zero if unknown
	// Name is the object's name. For a staged object it is the final name, "" if unknown, and
	// Staged is the destination's reference to the staged bytes, as in Prepared.
	Name, Staged string
}

// Kept is a leftover that Clean does not remove, with the reason.
type Kept struct {
	Leftover
	Why string // why Clean keeps the leftover, such as "run X is alive"
}

// Found is what lies at one scope of a destination besides committed data.
type Found struct {
	Holder    *Holder    // the holder of the scope's lease, nil if nobody holds it
	Pending   string     // the run whose commit is recorded and not finished, "" for none
	Leftovers []Leftover // leftovers that no run needs, so that Clean removes them
	Kept      []Kept     // leftovers that a run may still need
}

// Nothing tells whether there is neither a holder, nor a recorded commit, nor a leftover that
// Clean would remove.
func (f Found) Nothing() bool {
	return f.Holder == nil && f.Pending == "" && len(f.Leftovers) == 0
}

// Look returns what lies at d besides committed data, and changes nothing. It
// takes no lease, so a run that starts meanwhile is not refused. The scope is
// "" for a dataset and the file's name for a file.
func Look(ctx context.Context, d Destination, scope string) (Found, error) {
	return find(ctx, d, scope, nobody, false)
}

// nobody stands for the run of a caller who holds no lease. No run has this id. It differs
// from "", which stands for the run of a lease that cannot be read.
const nobody = "-"

// probing is the age up to which objects that a test of the destination wrote are left alone.
const probing = time.Hour

// find lists what lies at a scope, compares it with what leases, recorded commits and the
// manifest name, and says of the rest whether a run may still need it. self is the run that
// holds the scope's lease for the caller. With unlisted, parts that no manifest lists count as
// not needed.
//
// The order is such that nothing of a live run is taken for a leftover. What lies there is
// listed first, and the holders of leases are read after that. A live run holds its lease from
// before its first staged object until after its last one. So a listed object whose run holds
// no lease was left by a dead run, and a run that begins later has staged nothing that was
// listed. Recorded commits are read after the holders, so that no record of a dead run is
// missed, and the manifest last.
func find(ctx context.Context, d Destination, scope, self string, unlisted bool) (f Found, err error) {
	staged, err := d.Staged(ctx)
	if err != nil {
		return f, err
	}
	prefixes := []string{ControlFolder + "/"}
	if scope == "" {
		prefixes = append(prefixes, dtPrefix, partPrefix, idsFolder+"/", RejectsFolder+"/")
	}
	objects, err := listed(ctx, d, prefixes...)
	if err != nil {
		return f, err
	}
	holders, err := d.Holders(ctx)
	if err != nil {
		return f, err
	}
	holders = slices.DeleteFunc(holders, func(h ScopedHolder) bool { return h.Scope == scope && h.RunID == self })
	if i := slices.IndexFunc(holders, func(h ScopedHolder) bool { return h.Scope == scope }); i >= 0 {
		f.Holder = &holders[i].Holder
	}
	records, err := records(ctx, d)
	if err != nil {
		return f, err
	}
	recorded := records[recordName(scope)]
	f.Pending = recorded.run()

	var parts []Leftover // the parts of a dataset, and the id sets and dead letters beside them
	for _, o := range objects {
		l := Leftover{Kind: Temporary, Name: o.Name, Path: where(d, o.Name), Bytes: o.Bytes}
		switch {
		case strayKind(o.Name) != "":
			l.Kind = strayKind(o.Name)
			parts = append(parts, l)
		case isBelow(o.Name, TemporaryPrefix), isBelow(o.Name, ProbePrefix) && time.Since(o.Changed) > probing:
			l.Since = o.Changed
			staged = append(staged, l)
		}
	}
	for _, l := range staged {
		if l.Run == "" && l.Kind == UnfinishedUpload && !ofScope(l.Name, scope) {
			continue // the object is another program's
		}
		if why := needed(l, holders, records); why != "" {
			f.Kept = append(f.Kept, Kept{Leftover: l, Why: why})
		} else {
			f.Leftovers = append(f.Leftovers, l)
		}
	}
	if len(parts) == 0 || f.Holder != nil { // a live run may still record the parts that it wrote
		return f, nil
	}
	return f, f.compare(ctx, d, parts, recorded, unlisted)
}

// listed returns the objects whose names begin with one of the prefixes.
func listed(ctx context.Context, s Store, prefixes ...string) (objects []Object, err error) {
	for _, prefix := range prefixes {
		found, err := s.List(ctx, prefix)
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// needed says why a staged object or a temporary file may still be needed. It returns "" if no
// run needs the object.
func needed(l Leftover, holders []ScopedHolder, records map[string]*Commit) string {
	alive := func(run string) bool {
		return slices.ContainsFunc(holders, func(h ScopedHolder) bool { return h.RunID == run })
	}
	if l.Run != "" && alive(l.Run) {
		return fmt.Sprintf("run %s is still running", l.Run)
	}
	for _, c := range records {
		if l.Run == c.RunID || l.Run == "" && slices.ContainsFunc(c.New, func(p Prepared) bool { return p.Name == l.Name }) {
			return fmt.Sprintf("run %s was stopped before its end; the next run needs this to do the rest", c.RunID)
		}
	}
	switch {
	case alive(""): // the id of a live run cannot be read, so any object may be that run's
		return "a run still works here (its id cannot be read); clean again when it has ended"
	case l.Run == "" && len(holders) > 0:
		return fmt.Sprintf("run %s is still running", holders[0].RunID)
	}
	return ""
}

// compare adds those of a dataset's parts, id sets and dead letters that neither its manifest
// nor the recorded commit names. What a damaged manifest names is unknown, which is an error
// only if parts are to be removed. Where parts stay whose manifest is missing, what is beside
// them stays too: the manifest may come back, from a backup for example.
func (f *Found) compare(ctx context.Context, s Store, parts []Leftover, recorded *Commit, unlisted bool) error {
	m, _, err := ReadManifest(ctx, s, ManifestName)
	if _, damaged := errors.AsType[*ManifestError](err); damaged && !unlisted {
		return nil
	}
	if err != nil && !errors.Is(err, ErrNotExist) {
		return err
	}
	names := m.names()
	for _, name := range recorded.names() {
		names[name] = true
	}
	bare := m == nil && !unlisted && slices.ContainsFunc(parts, func(l Leftover) bool { return l.Kind == UnlistedPart })
	why := "no manifest lists it; look whether you need it, before --unlisted removes it"
	if bare {
		why = "the manifest is lost; a run with --full replaces it"
	}
	for _, l := range parts {
		switch {
		case names[l.Name]:
		case l.Kind == UnlistedPart && !unlisted:
			f.Kept = append(f.Kept, Kept{Leftover: l, Why: why})
		case !bare:
			f.Leftovers = append(f.Leftovers, l)
		}
	}
	return nil
}

// ofScope tells whether an object's final name belongs to a scope: it is the file itself, or a
// part of the dataset.
func ofScope(name, scope string) bool {
	if scope != "" {
		return name == scope
	}
	return strayKind(name) == UnlistedPart
}

// strayKind tells what an object of a dataset is if nothing needs it, by a name that IDsName or
// RejectsName returns, or that begins like a part's. It is "" for any other name: nobody else's file
// is touched.
func strayKind(name string) LeftoverKind {
	if likePart.MatchString(name) {
		return UnlistedPart
	}
	folder, file, _ := strings.Cut(name, "/")
	digest, _, _ := strings.Cut(file, ".")
	switch {
	case !isSHA256(digest):
	case folder == idsFolder && file == digest+idsExtension:
		return OrphanedIDs
	case folder == RejectsFolder && file == digest+rejectsExtension:
		return OrphanedLetters
	}
	return ""
}

// records returns the recorded commits at d, by object name. A record that cannot be read is
// an error, because it does not tell which objects its commit needs.
func records(ctx context.Context, d Destination) (map[string]*Commit, error) {
	objects, err := d.List(ctx, ControlFolder+"/")
	if err != nil {
		return nil, err
	}
	found := map[string]*Commit{}
	for _, o := range objects {
		if !IsScopeName(o.Name, IntentName) {
			continue
		}
		c, err := readRecord(ctx, d, o.Name)
		if err != nil {
			return nil, err
		}
		if c != nil { // c is nil if the commit was finished meanwhile
			found[o.Name] = c
		}
	}
	return found, nil
}

// where returns the address of a scope or an object at s, for messages.
func where(s Store, scope string) string {
	if scope == "" {
		return s.String()
	}
	return strings.TrimSuffix(s.String(), "/") + "/" + scope
}
