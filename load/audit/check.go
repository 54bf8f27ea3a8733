package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load"
)

// Target is an output to check.
type Target struct {
	Dest load.Destination
	Path string // for people
	File string // name of the single file, "" for a dataset
	// Format finds a format by its name. It returns false for one that is not known.
	Format func(name string) (load.Format, bool)
	// TempDir is the folder for parts that were fetched, "" is the system's.
	TempDir string
}

// mostTogether is how many parts are read at once. Each takes memory to be decoded.
const mostTogether = 4

// ChangedError means that a run committed while its output was checked. A second check
// tells more (exit code 75).
type ChangedError struct{ Path string }

// Error says what happened.
func (e *ChangedError) Error() string {
	return e.Path + ": a run committed while this check read its parts; check again"
}

// Temporary is true.
func (e *ChangedError) Temporary() bool { return true }

// Check reads every part of an output. The error is of what could not be read, such as a
// store that is away. What is damaged stands in the report, also a manifest that is missing.
func Check(ctx context.Context, t Target) (*Report, error) {
	name := load.ManifestName
	if t.File != "" {
		name = load.FileManifestName(t.File)
	}
	m, version, err := load.ReadManifest(ctx, t.Dest, name)
	damaged, isDamaged := errors.AsType[*load.ManifestError](err)
	r := &Report{Path: t.Path, Problems: []Problem{}, Notes: []string{}, dataset: t.File == ""}
	switch {
	case isDamaged:
		r.begun = true
		r.Problems = append(r.Problems, Problem{Kind: Manifest, Text: damaged.Error(), byHand: true}) // it says what to do, and no run does it
		return r, nil
	case errors.Is(err, load.ErrNotExist):
		return r, r.lacksManifest(ctx, t, name)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", t.Path, err)
	}
	r.begun = true
	r.Manifest, r.Form, r.Pipeline, r.RunID, r.Parts = m, m.Form, m.Pipeline, m.RunID, len(m.Parts)
	r.Covers, r.Undated = m.Covers()
	c := &checking{Target: t, Report: r, ids: idColumn(m), child: isChild(m)}
	if err := c.check(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Path, err)
	}
	if _, now, err := t.Dest.Get(ctx, name); err != nil || now != version {
		return nil, errors.Join(err, &ChangedError{Path: t.Path})
	}
	r.Rows = c.rows
	r.Finish()
	return r, nil
}

// lacksManifest says what lies at an output without a manifest.
func (r *Report) lacksManifest(ctx context.Context, t Target, name string) error {
	if r.dataset {
		there, err := load.TakeInventory(ctx, t.Dest, nil)
		if err != nil {
			return err
		}
		r.begun = len(there.Unlisted) > 0
	}
	if r.begun {
		r.About(Manifest, "%s is not there, and parts are: it was removed", name)
	} else {
		r.About(Manifest, "%s is not there: no run has committed here", name)
	}
	r.Finish()
	return nil
}

// resultID is what fills the column of ids, as manifests write it.
const resultID = "result_id"

// idColumn is the column that holds the results' ids, "" if none holds them as they are.
func idColumn(m *load.Manifest) string {
	for _, c := range m.Schema {
		if c.From == resultID && c.PII == "" && (c.Type == "int64" || c.Type == "string") {
			return c.Name
		}
	}
	return ""
}

// isChild tells whether a row is the element of a list. The list then gives two columns:
// the element and its position.
func isChild(m *load.Manifest) bool {
	return len(m.Schema) == 3 && m.Schema[1].From == m.Schema[2].From
}

// checking is the check of one output.
type checking struct {
	Target
	*Report
	ids   string // the column of ids
	child bool

	mu   sync.Mutex
	seen *roaring64.Bitmap // ids of the parts that were read
	rows int64             // of these parts
}

func (c *checking) check(ctx context.Context) error {
	c.seen = roaring64.New()
	if c.ids == "" {
		c.Notes = append(c.Notes, "no column holds the results' ids as they are, so ids were not checked")
	}
	if err := c.whole(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(min(mostTogether, runtime.GOMAXPROCS(0)))
	for _, p := range c.Manifest.Parts {
		c.Bytes += p.Bytes
		group.Go(func() error { return c.part(ctx, p) })
	}
	return group.Wait()
}

// whole checks what concerns no single part: the manifest's sums, _SUCCESS, and objects
// that look like parts.
func (c *checking) whole(ctx context.Context) error {
	var rows, rejected int64
	names := map[string]bool{}
	for _, p := range c.Manifest.Parts {
		rows, rejected = rows+p.Rows, rejected+p.Rejected
		if names[p.Path] {
			c.Add(Manifest, p, "the manifest lists the part twice")
		}
		names[p.Path] = true
	}
	if rows != c.Manifest.Rows {
		c.About(Manifest, "the manifest says %d rows, and its parts %d", c.Manifest.Rows, rows)
	}
	if !c.dataset {
		if len(c.Manifest.Parts) != 1 {
			c.About(Manifest, "the manifest of a single file lists %d parts", len(c.Manifest.Parts))
		}
		return nil
	}
	switch mark, _, err := c.Dest.Get(ctx, load.SuccessName); {
	case errors.Is(err, load.ErrNotExist):
		c.About(Manifest, "%s is missing, so that readers take the dataset for unfinished", load.SuccessName)
	case err != nil:
		return err
	default:
		if run, _, _ := bytes.Cut(mark, []byte("\n")); string(run) != c.Manifest.RunID {
			c.About(Manifest, "%s names the run %q, and the manifest the run %s", load.SuccessName, run, c.Manifest.RunID)
		}
	}
	there, err := load.TakeInventory(ctx, c.Dest, c.Manifest)
	for _, o := range there.Unlisted {
		c.Problems = append(c.Problems, Problem{Kind: Unlisted, Part: o.Name, Text: "no manifest lists it, and readers that glob take it for data"})
	}
	format, _ := c.Format(c.Manifest.Format)
	for _, o := range there.Foreign {
		if name := path.Base(o.Name); !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, ".") && strings.Contains(name, format.Extension) {
			c.Problems = append(c.Problems, Problem{Kind: Unlisted, Part: o.Name, Text: "no run wrote it, and readers that glob take it for data; move it away", byHand: true})
		}
	}
	return err
}

// add adds a problem of a part, while others are read.
func (c *checking) add(kind Kind, p load.Part, format string, values ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Add(kind, p, format, values...)
}
