package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/schemas/plain"
)

// Verification is what Verify or VerifyPath found.
type Verification struct {
	Sound    bool        `json:"sound"`    // no output has a problem, and all outputs could be checked
	Requests int64       `json:"requests"` // requests that asked the service for counts
	Outputs  []*Verified `json:"outputs"`
}

// Verify checks the outputs of a definition against their manifests. With against it also compares
// the parts of all but child outputs with the service's counts, window by window. It writes
// nothing. If the definition has globs, it also asks the service for the list of forms. The error
// is a *pipelines.FormsError if something could not be checked; what is damaged stands in the
// report.
func Verify(ctx context.Context, def *definition.Definition, o pipelines.Options, against bool) (*Verification, error) {
	o = o.WithDefaults()
	report := &Verification{}
	var client extract.Client
	if against {
		var err error
		if client, err = pipelines.NewClient(ctx, def, o); err != nil {
			return report, err
		}
		defer client.Close()
	}
	_, failed, err := eachForm(ctx, def, o, func(def *definition.Definition, form string) error {
		v := &verifier{def: def, o: o, form: form}
		if client != nil {
			fork := client.Fork()
			v.client = extract.Counting(fork)
			defer func() { report.Requests += fork.Requests().Count + fork.Requests().Results }()
		}
		return eachOutput(ctx, def, o, form, func(out definition.Output, at output.Location) error {
			found, err := v.output(ctx, out, at)
			if err != nil {
				found = &Verified{Path: at.Path, Form: form, Pipeline: def.Name, Problems: []Problem{}, Notes: []string{}}
			}
			report.Outputs = append(report.Outputs, found)
			return err
		})
	})
	if err != nil {
		return report, err
	}
	return report, failed.OrNil()
}

// verifier checks the outputs of one form against their manifests and the service's counts.
type verifier struct {
	def    *definition.Definition
	o      pipelines.Options
	form   string
	client extract.Service // nil if the service is not asked for counts
	counts sync.Map        // the service's count by window (load.Range), so that outputs share counts
}

func (v *verifier) output(ctx context.Context, out definition.Output, at output.Location) (found *Verified, err error) {
	if !out.Lasting() {
		return &Verified{
			Path: at.Path, Form: v.form, Pipeline: v.def.Name, Problems: []Problem{}, Sound: true,
			Notes: []string{"each run writes to a path of its own here, so none was checked: check that of one run with `formetl verify PATH`"},
		}, nil
	}
	if out.Database != nil {
		found, err = v.table(ctx, out, at.Path)
	} else {
		var dest load.Destination
		if dest, err = v.o.BuiltIn.Open(ctx, at.Root, out); err == nil {
			found, err = check(ctx, dest, at.Path, at.Scope)
		}
	}
	if err != nil {
		return nil, err
	}
	if m := found.Manifest; m != nil {
		if m.Form != v.form || m.Source.Account != v.def.Source.Account {
			found.about(byFullRun, "the manifest is of form %s of account %s, but the definition writes form %s of account %s", m.Form, m.Source.Account, v.form, v.def.Source.Account)
		}
		if v.client != nil && !out.Exploded() {
			if err = v.compare(ctx, found); err != nil {
				return nil, fmt.Errorf("%s: %w", at.Path, err)
			}
		}
	}
	found.finish(v.def)
	return found, nil
}

// table compares a table of a database with the manifest of its last load.
func (v *verifier) table(ctx context.Context, out definition.Output, path string) (*Verified, error) {
	o := &Verified{Path: path, Problems: []Problem{}, Notes: []string{"changes of values by hand are not found, because a table has no checksums"}}
	table, err := v.o.BuiltIn.OpenTable(path, out.Database)
	if err != nil {
		return nil, err
	}
	m, _, err := table.Last(ctx)
	if err != nil {
		return nil, err
	}
	if o.nothing = m == nil; o.nothing {
		o.about(byAnyRun, "no run has loaded the table yet")
		return o, nil
	}
	o.of(m)
	const some = "some of its rows are missing"
	lacking, lists, err := table.Lacking(ctx, m)
	for _, p := range lacking {
		o.add("missing", p, some)
	}
	for _, list := range lists {
		o.Problems = append(o.Problems, Problem{Kind: "missing", Part: list, Text: some})
	}
	if len(o.Problems) > 0 {
		o.mend = byAnyRun
	}
	def := *v.def
	def.Schema = nil // the columns are those of the manifest
	job := v.o.Job(&def, v.form)
	switch misfit := output.CheckTable(ctx, job, out); {
	case errors.Is(misfit, load.ErrConfig):
		mend := byFullRun
		if job.Full = true; output.CheckTable(ctx, job, out) != nil {
			mend = byNoRun
		}
		text := misfit.Error()
		if table, ok := errors.AsType[*load.Error](misfit); ok && mend == byNoRun && table.Remedy != "" {
			text += ": " + table.Remedy
		}
		o.about(mend, "%s", text)
	case !errors.Is(misfit, load.ErrFailed): // a role that may only read cannot load
		err = errors.Join(err, misfit)
	}
	for _, p := range m.Parts {
		if !slices.ContainsFunc(lacking, func(l load.Part) bool { return l.Path == p.Path }) {
			o.Rows += p.Rows
		}
	}
	return o, err
}

// compare compares the results in the parts of each window, rejected ones too, with the service's
// count of that window, and adds a problem where they differ.
func (v *verifier) compare(ctx context.Context, found *Verified) error {
	if v.def.Extract.View != "" || len(v.def.Extract.Search.Where) > 0 {
		found.Notes = append(found.Notes, "the service was not asked, because it cannot count the results of a search or a view")
		return nil
	}
	var windows []load.Range
	first, held := map[load.Range]load.Part{}, map[load.Range]int64{}
	for _, p := range found.Manifest.Parts {
		w := load.Range{From: p.From, To: p.To}
		if p.Undated {
			w = undated
		}
		if _, known := held[w]; !known {
			windows, first[w] = append(windows, w), p
		}
		held[w] += p.Rows + p.Rejected
	}
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(max(1, v.def.Source.Requests.Concurrency))
	for _, w := range windows {
		group.Go(func() error {
			_, err := v.count(inGroup, w)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, w := range windows {
		n, err := v.count(ctx, w)
		if err == nil && n != held[w] && w.From.IsZero() && found.single {
			// A single file of all results also holds those without a date.
			var more int64
			more, err = v.count(ctx, undated)
			n += more
		}
		if err != nil {
			return err
		}
		if n != held[w] {
			found.add("count", first[w], "the service counts %s in this window, but its parts have %d", plain.Plural(n, "result"), held[w])
		}
	}
	return nil
}

// undated is an empty window, from the epoch to the epoch, that stands for the results without a
// date.
var undated = load.Range{From: load.Wall(extract.Epoch), To: load.Wall(extract.Epoch)}

// count returns the service's count of a window, for which it asks the service once. A window with
// an end alone is counted from the epoch, because results without a date may match an upper bound
// alone. A window without both bounds holds all results.
func (v *verifier) count(ctx context.Context, w load.Range) (n int64, err error) {
	if known, ok := v.counts.Load(w); ok {
		return known.(int64), nil
	}
	q := extract.CountQuery{Window: extract.Window{From: w.From.Time, To: w.To.Time}}
	switch {
	case w == undated:
		q.Window = extract.Window{}
	case w.From.IsZero() && !w.To.IsZero():
		q.Window.From = extract.Epoch
	}
	if n, err = v.client.Count(ctx, v.form, q); err == nil && w == undated {
		n, err = extract.CountUndated(ctx, v.client, v.form, n)
	}
	if err == nil {
		v.counts.Store(w, n)
	}
	return n, err
}

// VerifyPath checks the output at a path or URL against its manifest. A path that ends with a slash
// is the folder of a dataset, any other path a single file. given are the flags of the command
// line, which the proposed commands repeat. The error is a *definition.Fault if neither a manifest
// nor a part lies at the path.
func VerifyPath(ctx context.Context, path string, o pipelines.Options, given []string) (*Verification, error) {
	report := &Verification{}
	o = o.WithDefaults()
	out := definition.Output{Path: path}
	root, file := path, ""
	if !out.Dataset() {
		root, file = definition.SplitPath(path)
	}
	dest, err := o.BuiltIn.Open(ctx, root, out)
	if err != nil {
		return report, err
	}
	found, err := check(ctx, dest, path, file)
	if err != nil {
		return report, err
	}
	if folder, name := definition.SplitPath(strings.TrimSuffix(path, "/")); found.Manifest == nil && strings.HasPrefix(name, "dt=") {
		return report, &definition.Fault{Code: 64, Text: path + " is a folder within a dataset", Cure: "give the dataset: `formetl verify " + definition.ShellWord(folder+"/") + "`"}
	}
	if found.nothing {
		return report, &definition.Fault{
			Code: 64, Text: "there is no manifest at " + path,
			Cure: "give a definition (a .yaml file), the folder of a dataset with a slash at its end, or a file with a manifest (formetl export writes one with --manifest)",
		}
	}
	found.finish(&definition.Definition{Given: given}) // has no File: commands say DEFINITION
	report.Outputs = []*Verified{found}
	return report, nil
}
