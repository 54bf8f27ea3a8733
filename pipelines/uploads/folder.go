// Package uploads stores the files that people uploaded with their answers, and tells what became
// of each: the rows of the child output "files".
//
// The files of a definition lie in one folder, that of files:. Each is fetched once, and appears
// in its place whole. What became of the files of a result stands in a small object beside them,
// the entry of the result, which is written when all its files are settled. So the folder itself
// tells what is still to be fetched, also after a run that was killed, and rows are made from
// the entries.
//
// Links are text that people and the service wrote. Package transport decides where they may lead
// (transport.FileCall), and safeName what a file may be called.
//
// Begin reading with Folder.Fetch.
package uploads

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
)

// Folder is the folder with the uploaded files of one form.
type Folder struct {
	def     *definition.Files
	job     *output.Job
	client  extract.Client
	dest    load.Destination
	lease   load.Lease
	watch   func()
	items   map[string]bool         // see wanted
	hidden  map[schemas.Source]bool // columns with a pii rule: what truncate(n) leaves may still be a link
	entries idset.Set               // results that have an entry

	mu        sync.Mutex
	report    Report
	failing   idset.Builder // results with files to ask for again
	unfetched idset.Set     // the same, once Fetch has ended
	obsolete  idset.Builder // results that have other files now
	deleted   idset.Set     // results that are deleted
	example   string        // a file that is not stored
	failed    int           // files in a row that could not be had and that earlier runs did not fail to fetch
}

// Report says what became of the uploaded files of the results that a run read.
type Report struct {
	Path    string                         `json:"path"`
	Files   map[transport.FileStatus]int64 `json:"status"`  // by what became of them
	Bytes   int64                          `json:"bytes"`   // of the stored ones
	Fetched int64                          `json:"fetched"` // files that this run asked the service for
	Removed int64                          `json:"removed"` // files of results that are deleted or have other files now
	Planned int64                          `json:"-"`       // files of results for which no earlier run asked
}

// wanted returns the items whose files are fetched: those of the columns that are written. nil means
// all of them.
func wanted(def *definition.Definition) map[string]bool {
	some, all := map[string]bool{}, false
	for _, out := range def.Outputs {
		all = all || !out.Exploded() && out.Select == nil
		for _, from := range out.Select {
			some[from.ID] = true
		}
	}
	if s := def.Schema; all && s != nil && !s.Adds() {
		all = false
		for _, c := range s.Columns {
			some[c.From.ID] = true
		}
	}
	if all {
		return nil
	}
	return some
}

// wants tells whether files of an item are fetched. Those that were fetched when it was wanted stay
// in the folder, and are not listed.
func (f *Folder) wants(item string) bool { return f.items == nil || f.items[item] }

// entriesFolder begins the names of the entries of results.
const entriesFolder = load.ControlFolder + "/files/"

// entry says what became of the files of a result. Those that a run is about to store or to remove
// have a path and no status.
type entry struct {
	// Updated is the result's date_update when its files were fetched, as text. A result
	// that was edited since may have other files under the same links.
	Updated string `json:"date_update"`
	Files   []file `json:"files"`
}

// file is an uploaded file and what became of it.
type file struct {
	Item   string               `json:"item"` // the item's id
	N      int                  `json:"n"`    // which value of the item it is, from 1
	Link   string               `json:"link"`
	Name   string               `json:"name"` // the link's last element, made safe
	Status transport.FileStatus `json:"status"`
	Type   string               `json:"type,omitempty"`
	// Path, Bytes and SHA256 are of what lies in the folder: the file, or an older one in its place
	// that could not be fetched anew. Path is relative to the folder.
	Path   string `json:"path,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	Failed int    `json:"failed,omitempty"` // runs that could not fetch it
}

// again tells whether a file is to be asked for again although the result was not edited.
func (is file) again(full bool) bool {
	if full {
		return is.Status != transport.FileStored
	}
	return is.Status == transport.FileFailed && is.Failed < mostTries
}

// mostTries is in how many runs a file may fail before it is given up until its result is edited
// or all results are read anew (--full).
const mostTries = 5

// Open opens the folder of a form's files and takes its lease, so that one run at a time writes
// there. The caller closes it.
func Open(ctx context.Context, job *output.Job, client extract.Client) (_ *Folder, err error) {
	f := &Folder{
		def: job.Def.Files, job: job, client: client, items: wanted(job.Def), hidden: map[schemas.Source]bool{}, report: Report{Files: map[transport.FileStatus]int64{}},
	}
	if job.Def.Schema != nil {
		for _, c := range job.Def.Schema.Columns {
			f.hidden[c.From] = c.PII.Kind != schemas.PIINone
		}
	}
	if f.report.Path, err = definition.ExpandPath(f.def.Path, job.Def.PathValues(job.Form, job.RunID)); err != nil {
		return nil, err
	}
	if f.dest, err = job.BuiltIn.Open(ctx, f.report.Path, f.def.Output()); err != nil {
		return nil, err
	}
	if f.lease, err = f.dest.Acquire(ctx, "", job.Holder()); err != nil {
		return nil, err
	}
	if err := f.look(ctx); err != nil {
		return nil, errors.Join(err, f.Close(ctx))
	}
	return f, nil
}

// look finds out which results have entries. It removes what dead runs had staged or half written.
func (f *Folder) look(ctx context.Context) error {
	left, err := f.dest.Staged(ctx)
	if err != nil {
		return err
	}
	for _, l := range left {
		folder, _, _ := strings.Cut(l.Name, "/")
		if _, err := strconv.ParseInt(folder, 10, 64); l.Run == "" && (l.Kind != load.UnfinishedUpload || err != nil) {
			continue // another program's. Of a result's files, it is of a run that died as it began the upload
		}
		if err := f.dest.Abort(ctx, load.Prepared{Name: l.Name, Staged: l.Staged}); err != nil {
			return err
		}
	}
	objects, err := f.dest.List(ctx, load.ControlFolder+"/")
	if err != nil {
		return err
	}
	var ids idset.Builder
	for _, o := range objects {
		if strings.HasPrefix(o.Name, load.TemporaryPrefix) {
			if err := f.dest.Delete(ctx, o.Name); err != nil {
				return err
			}
		}
		if !strings.HasPrefix(o.Name, entriesFolder) {
			continue
		}
		id, err := strconv.ParseInt(strings.TrimSuffix(path.Base(o.Name), ".json"), 10, 64)
		if err == nil {
			ids.Add(id)
		}
	}
	f.entries = ids.Set()
	return f.own(ctx)
}

// own notes in the folder whose files it holds. A folder of another form is refused: its results
// have the same ids, and a run would take its files for those of deleted results.
func (f *Folder) own(ctx context.Context) error {
	const name = entriesFolder + "of"
	owner := fmt.Sprintf("form %s of account %s", f.job.Form, f.job.Def.Source.Account)
	switch data, _, err := f.dest.Get(ctx, name); {
	case errors.Is(err, load.ErrNotExist):
		return f.dest.Put(ctx, name, []byte(owner), load.AnyVersion)
	case err != nil:
		return err
	case string(data) != owner:
		cure := "give each form its own folder: below files:, write {form} into the path, such as path: uploads/{form}/"
		if f.job.Def.File == "" {
			cure = "give --files another folder"
		}
		return &definition.Fault{Code: 73, Text: fmt.Sprintf("%s contains the uploaded files of %s, and each form needs a folder of its own", f.report.Path, data), Cure: cure}
	}
	return nil
}

// Close gives the lease back, also of a run that was told to stop.
func (f *Folder) Close(ctx context.Context) error {
	ctx, cancel := load.Lingering(ctx, load.Grace)
	defer cancel()
	return f.lease.Release(ctx)
}

// Unfetched returns the results with files that the next run is to ask for again: they failed, and
// not for the last time.
func (f *Folder) Unfetched() idset.Set { return f.unfetched }

// Results returns the ids of the results that have files, or had some when the folder was opened.
func (f *Folder) Results() idset.Set { return f.entries }

// Report returns what became of the files.
func (f *Folder) Report() *Report { return &f.report }

// Fetch fetches the files of the snapshot's results that are not stored yet. Those of the results in
// deleted, and those that an edited result no longer names, are left to Tidy. It ends early, with an
// error that tells to run again, if the service is away or the budget is used up: what was fetched
// is kept. watch is called before the first file and after each.
func (f *Folder) Fetch(ctx context.Context, s *reconcile.Snapshot, deleted idset.Set, watch func()) error {
	f.watch = watch
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() {
		select {
		case <-f.lease.Lost():
			cancel(&load.HeldError{Path: f.report.Path})
		case <-ctx.Done():
		}
	})
	for _, w := range s.Windows {
		err := f.each(ctx, s, w, func(results []result) error {
			for _, r := range results {
				if !f.entries.Contains(r.id) {
					f.report.Planned += int64(len(r.links))
				}
			}
			return nil
		})
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
	}
	f.job.Log.LogAttrs(ctx, slog.LevelInfo, "fetching uploaded files", slog.Int64("files", f.report.Planned))
	watch()
	for _, w := range s.Windows {
		err := f.each(ctx, s, w, func(results []result) error {
			group, fetching := errgroup.WithContext(ctx)
			group.SetLimit(f.def.Concurrency)
			for _, r := range results {
				group.Go(func() error { return f.settle(fetching, r) })
			}
			return group.Wait()
		})
		if err != nil {
			return cmp.Or(context.Cause(ctx), err) // the store may say only that it was stopped
		}
	}
	f.deleted = deleted.Intersect(f.entries)
	f.unfetched = f.failing.Set()
	if rest := f.report.Rest(); rest != "" && f.job.Def.Extract.Proof {
		return &definition.Fault{
			Code: 65, Text: fmt.Sprintf("the service did not give all uploaded files: %s, such as %s; no output was written, because --strict or verify: required asks for all files", rest, f.example),
			Cure: "try again later, if they failed; if the service has the others again, add --full to a run, or --fresh to an export; to go on without them, leave out --strict and `verify: required`",
		}
	}
	return nil
}

// Rest names how many files are not stored, and why; "" if all are.
func (r *Report) Rest() string {
	var words []string
	for _, status := range slices.Sorted(maps.Keys(notStored)) {
		if n := r.Files[status]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, notStored[status]))
		}
	}
	return strings.Join(words, ", ")
}

// notStored are the statuses of files that are not stored, in words.
var notStored = map[transport.FileStatus]string{
	transport.FileMissing: "missing at the service", transport.FileForbidden: "forbidden by the service",
	transport.FileTooLarge: "too large for max_bytes", transport.FileChanged: "changed while it came",
	transport.FileRefused: "at an address that formetl does not ask (see files.hosts)",
	transport.FileFailed:  fmt.Sprintf("failed to download (at most %d runs try it)", mostTries),
}

// settle makes the folder hold the files of a result, and writes its entry. In the entry, a file that
// the result no longer names has a path and no status.
func (f *Folder) settle(ctx context.Context, r result) error {
	was, err := f.entry(ctx, r.id)
	if err != nil {
		return err
	}
	is, announced := entry{Updated: r.updated}, false
	for _, l := range r.links {
		before, known := was.find(l)
		now := before
		fetch := !known || was.Updated != r.updated || before.again(f.job.Full)
		if !fetch && now.Status == transport.FileStored {
			there, err := f.dest.Stat(ctx, now.Path)
			if err != nil && !errors.Is(err, load.ErrNotExist) {
				return err
			}
			fetch = err != nil || there.Bytes != now.Bytes
		}
		if fetch {
			if !announced {
				announced = true
				if was, err = f.announce(ctx, r, was); err != nil {
					return err
				}
			}
			if now, err = f.fetch(ctx, r.id, l); err != nil {
				return err
			}
			f.watch()
			if now.Status == transport.FileFailed { // an older copy is better than none
				now.Failed, now.Path, now.Bytes, now.SHA256 = before.Failed+1, before.Path, before.Bytes, before.SHA256
			}
		}
		is.Files = append(is.Files, now)
		if err := f.count(r.id, now, fetch); err != nil {
			return err
		}
	}
	for _, old := range was.Files {
		switch {
		case old.Path == "" || is.holds(old.Path):
		case old.Status == "": // a place that was announced, and no list has it
			if err := f.dest.Delete(ctx, old.Path); err != nil {
				return err
			}
		case !f.wants(old.Item):
			is.Files = append(is.Files, old)
		default:
			is.Files = append(is.Files, file{Path: old.Path})
			f.mu.Lock()
			f.obsolete.Add(r.id)
			f.mu.Unlock()
		}
	}
	if slices.Equal(is.Files, was.Files) && is.Updated == was.Updated {
		return nil
	}
	return f.write(ctx, r.id, is)
}

// Tidy removes the files of deleted results, and those that edited results no longer name. It is
// called once the commit is recorded that lists them no more.
func (f *Folder) Tidy(ctx context.Context) error {
	if err := load.StillHeld(f.lease, f.report.Path); err != nil {
		return err
	}
	for id := range f.obsolete.Set().Union(f.deleted).All() {
		e, err := f.read(ctx, id)
		if err != nil {
			return err
		}
		stays := entry{Updated: e.Updated}
		for _, is := range e.Files {
			if is.Status != "" && !f.deleted.Contains(id) {
				stays.Files = append(stays.Files, is)
				continue
			}
			if is.Path != "" {
				if err := f.dest.Delete(ctx, is.Path); err != nil {
					return err
				}
				f.report.Removed++
			}
		}
		if len(stays.Files) > 0 {
			err = f.write(ctx, id, stays)
		} else {
			err = f.dest.Delete(ctx, entryName(id))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *Folder) write(ctx context.Context, id int64, e entry) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return f.dest.Put(ctx, entryName(id), data, load.AnyVersion)
}

// announce adds the places of a result's files to its entry, before the first of them is stored. So
// each file in the folder stands in an entry, also after a run that was killed.
func (f *Folder) announce(ctx context.Context, r result, was entry) (entry, error) {
	before := len(was.Files)
	for _, l := range r.links {
		if at := l.place(r.id); !was.holds(at) {
			was.Files = append(was.Files, file{Path: at})
		}
	}
	if len(was.Files) == before {
		return was, nil
	}
	return was, f.write(ctx, r.id, was)
}

// count adds a file to the report. The error tells that the service gives no files any more.
func (f *Folder) count(id int64, is file, fetched bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if is.again(false) {
		f.failing.Add(id)
	}
	if is.Status != transport.FileStored {
		f.example = cmp.Or(f.example, fmt.Sprintf("%s of result %d", is.Name, id))
	}
	if f.report.Files[is.Status]++; is.Status == transport.FileStored {
		f.report.Bytes += is.Bytes
	}
	if fetched {
		f.report.Fetched++
	}
	switch {
	case is.Status != transport.FileFailed && fetched:
		f.failed = 0
	case is.Status == transport.FileFailed && is.Failed == 1:
		f.failed++
	}
	if f.failed < mostFailed {
		return nil
	}
	return &definition.Fault{Code: 75, Text: fmt.Sprintf("%s: %d uploaded files in a row could not be fetched, so the service seems to give out none now; what was fetched is kept, and the next run continues from there", f.report.Path, f.failed)}
}

// mostFailed is how many files may fail in a row before the run ends, because the service rather
// than the files is to blame. Files that failed in an earlier run do not count, so that broken
// ones do not end every run.
const mostFailed = 10

// fetch fetches one file and stores it.
func (f *Folder) fetch(ctx context.Context, id int64, l link) (file, error) {
	is := file{Item: l.item, N: l.n, Link: l.url.String(), Name: safeName(l.url)}
	at := l.place(id)
	var upload load.Upload
	defer func() {
		if upload != nil {
			_ = upload.Abort() // after Prepare it does nothing
		}
	}()
	got, err := f.client.File(ctx, transport.FileCall{
		Form: f.job.Form, Link: l.url, Hosts: f.def.Hosts, MaxBytes: f.def.MaxBytes,
		Begin: func() (_ io.Writer, err error) {
			if upload != nil {
				_ = upload.Abort() // of bytes that are void
			}
			upload, err = f.dest.Stage(ctx, f.job.RunID, at)
			return upload, err
		},
	})
	if is.Status = got.Status; is.Status == transport.FileStored {
		is.Type = got.Type
	}
	if err != nil || got.Status != transport.FileStored {
		if err == nil {
			f.job.Log.LogAttrs(ctx, slog.LevelInfo, "an uploaded file was not stored: "+notStored[got.Status], slog.Int64("result", id), slog.String("item", l.item), slog.String("name", is.Name), slog.String("status", string(got.Status)))
		}
		return is, err
	}
	f.job.At(PointFile)
	prepared, err := upload.Prepare(ctx)
	if err != nil {
		return is, err
	}
	prepared.Replace = true
	is.Path, is.Bytes, is.SHA256 = at, prepared.Bytes, prepared.SHA256
	if err := f.dest.Commit(ctx, prepared); err != nil {
		return is, errors.Join(err, load.AbortAll(context.WithoutCancel(ctx), f.dest, prepared))
	}
	f.job.At(PointFileStored)
	return is, nil
}

// Points of a run at which output.Job.At is called.
const (
	PointFile       = "file"        // all bytes of an uploaded file came
	PointFileStored = "file_stored" // it lies in its place, and the entry of its result does not tell it yet
)

// entry reads what became of a result's files. It is empty if nothing is known.
func (f *Folder) entry(ctx context.Context, id int64) (e entry, err error) {
	if !f.entries.Contains(id) {
		return e, nil
	}
	return f.read(ctx, id)
}

func (f *Folder) read(ctx context.Context, id int64) (e entry, err error) {
	data, _, err := f.dest.Get(ctx, entryName(id))
	if errors.Is(err, load.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return entry{}, nil //nolint:nilerr // a damaged entry costs requests, and nothing else
	}
	return e, nil
}

func entryName(id int64) string { return entriesFolder + strconv.FormatInt(id, 10) + ".json" }

// find returns the file of a link.
func (e entry) find(l link) (file, bool) {
	for _, is := range e.Files {
		if is.Item == l.item && is.N == l.n && is.Link == l.url.String() {
			return is, true
		}
	}
	return file{}, false
}

// holds tells whether a stored file lies at a path.
func (e entry) holds(at string) bool {
	return slices.ContainsFunc(e.Files, func(is file) bool { return is.Path == at })
}

// The most bytes of a file's name, and of the item's id before it: file systems take 255 for both.
const (
	mostName = 150
	mostItem = 60
)

// safe makes a text a part of a name: it keeps letters, digits, dots, hyphens and underscores.
func safe(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(".-_", r) {
			return r
		}
		return '_'
	}, strings.ToValidUTF8(text, "_"))
}
