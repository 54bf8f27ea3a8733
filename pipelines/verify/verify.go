// Package verify checks what runs wrote: each output against its manifest, and its windows
// against the service's counts. It changes nothing.
//
// Begin reading with Definition.
package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/audit"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// Report is what a check of a definition's outputs found.
type Report struct {
	Pipeline   string
	Definition string
	Outputs    []*audit.Report
	Requests   int64 // sent to ask the service for counts
}

// Definition checks the outputs of a definition against their manifests. With against it also
// compares the parts of the main outputs with the service's counts, window by window.
// Nothing is written. The error is an *account.FormsError where something could not be
// checked; what is damaged stands in the report.
func Definition(ctx context.Context, def *definition.Definition, o account.Options, against bool) (*Report, error) {
	o = o.WithDefaults()
	report := &Report{Pipeline: def.Name, Definition: def.File}
	found, err := account.FindForms(ctx, def, o)
	if err != nil {
		return report, err
	}
	var client extract.Client
	if against {
		if client, err = account.NewClient(ctx, def, o); err != nil {
			return report, err
		}
		defer client.Close()
	}
	var failed account.FormsError
	err = failed.Each(ctx, found.Forms, func(form string) error {
		v := verifier{def: def, o: o, form: form, counts: map[load.Range]int64{}}
		if client != nil {
			fork := client.Fork()
			v.client = extract.Counting(fork)
			defer func() { report.Requests += fork.Requests().Count + fork.Requests().Results }()
		}
		var failures []error
		for _, out := range def.Outputs {
			if ctx.Err() != nil || out.Path == definition.StdoutPath {
				continue
			}
			checked, err := v.output(ctx, out)
			if err != nil {
				failures = append(failures, err)
				continue
			}
			report.Outputs = append(report.Outputs, checked)
		}
		return output.Failed(failures)
	})
	if err != nil {
		return report, err
	}
	return report, failed.OrNil()
}

// verifier checks the outputs of one form.
type verifier struct {
	def    *definition.Definition
	o      account.Options
	form   string
	client extract.Service      // nil if the service is not asked
	counts map[load.Range]int64 // what the service counts in a window; outputs share it
}

func (v *verifier) output(ctx context.Context, out definition.Output) (*audit.Report, error) {
	at, err := output.Locate(v.def, out, v.form, v.o.RunID)
	if err != nil {
		return nil, err
	}
	if strings.Contains(out.Path, "{run_id}") {
		return &audit.Report{
			Path: at.Path, Form: v.form, Pipeline: v.def.Name, Problems: []audit.Problem{},
			Notes: []string{"each run has a path of its own here: verify the path of one run"},
		}, nil
	}
	dest, err := v.o.Tables.Open(ctx, at.Root, out)
	if err != nil {
		return nil, err
	}
	report, err := audit.Check(ctx, audit.Target{Dest: dest, Path: at.Path, File: at.Scope, Format: v.o.Tables.Format})
	if err != nil {
		return nil, err
	}
	if m := report.Manifest; m != nil {
		if m.Form != v.form || m.Source.Account != v.def.Source.Account {
			report.About(audit.Manifest, "it is the manifest of form %s of pipeline %s, and the definition writes form %s", m.Form, m.Pipeline, v.form)
		}
		if v.client != nil && !out.Exploded() {
			err = v.compare(ctx, report)
		}
	}
	report.Finish()
	v.spareFiles(report)
	return report, err
}

// spareFiles changes how a dataset is mended where the definition also writes a file. A run
// of a range writes the file anew with that range alone. A run of the definition's own
// range mends the dataset too, if all that is damaged lies in it.
func (v *verifier) spareFiles(report *audit.Report) {
	file := slices.IndexFunc(v.def.Outputs, func(out definition.Output) bool { return !out.Dataset() && out.Path != definition.StdoutPath })
	damaged := report.Damaged()
	if file < 0 || report.Single() || len(damaged) == 0 || report.MendsAll() {
		return
	}
	e := v.def.Extract
	outside := slices.ContainsFunc(damaged, func(p load.Part) bool {
		return p.From.Before(e.From) || !e.To.IsZero() && p.To.After(e.To)
	})
	if outside {
		report.Notes = append(report.Notes, "a run of a range writes "+v.def.Outputs[file].Path+" anew with that range alone; run it again afterwards without --from and --to")
		return
	}
	report.MendByRuns("")
}

// compare compares the parts of each window with the service's count. Parts of one window
// are summed.
func (v *verifier) compare(ctx context.Context, report *audit.Report) error {
	if v.def.Extract.View != "" || len(v.def.Extract.Search.Where) > 0 {
		report.Notes = append(report.Notes, "the service was not asked, because its counts know nothing of a search or a view")
		return nil
	}
	var windows []load.Range
	first, held := map[load.Range]load.Part{}, map[load.Range]int64{}
	for _, p := range report.Manifest.Parts {
		w := load.Range{From: p.From, To: p.To}
		if p.Undated {
			w = undated
		}
		if _, known := held[w]; !known {
			windows, first[w] = append(windows, w), p
		}
		held[w] += p.Rows + p.Rejected
	}
	if err := v.count(ctx, windows); err != nil {
		return fmt.Errorf("%s: %w", report.Path, err)
	}
	for _, w := range windows {
		n := v.counts[w]
		if n != held[w] && w.From.IsZero() && report.Single() { // a file of everything also holds the results without a date
			if err := v.count(ctx, []load.Range{undated}); err != nil {
				return fmt.Errorf("%s: %w", report.Path, err)
			}
			n += v.counts[undated]
		}
		if n != held[w] {
			report.Add(audit.Count, first[w], "the service counts %d results in this window, and its parts hold %d", n, held[w])
		}
	}
	return nil
}

// undated stands for the results without a date, which lie in no window.
var undated = load.Range{From: load.Wall(extract.Epoch), To: load.Wall(extract.Epoch)}

// count asks the service for the counts of windows that were not counted before.
func (v *verifier) count(ctx context.Context, windows []load.Range) error {
	counts := make([]int64, len(windows))
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(max(1, v.def.Source.Requests.Concurrency))
	for i, w := range windows {
		if n, known := v.counts[w]; known {
			counts[i] = n
			continue
		}
		group.Go(func() (err error) {
			counts[i], err = v.ask(inGroup, w)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, w := range windows {
		v.counts[w] = counts[i]
	}
	return nil
}

// ask counts a window. One without a beginning begins at the epoch, because results
// without a date may match an upper bound alone. One without an end and without a
// beginning holds all results.
func (v *verifier) ask(ctx context.Context, w load.Range) (int64, error) {
	of := extract.Window{From: w.From.Time, To: w.To.Time}
	switch {
	case w == undated:
		total, err := v.client.Count(ctx, v.form, extract.CountQuery{})
		if err != nil {
			return 0, err
		}
		return extract.CountUndated(ctx, v.client, v.form, total)
	case of.From.IsZero() && !of.To.IsZero():
		of.From = extract.Epoch
	}
	return v.client.Count(ctx, v.form, extract.CountQuery{Window: of})
}
