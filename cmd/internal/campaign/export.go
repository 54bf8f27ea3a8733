package main

import (
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// newExport chooses the flags that formetl export is given. It is judged like
// a definition that has one file, which lies on disk.
func (l *life) newExport(random *rand.Rand) *definition {
	e := &definition{names: pick(random, "id", "label"), verify: true, window: "auto", unfinished: none}
	e.Zone, e.DatesIgnored, e.SearchIgnored, e.Uncounted, e.api = l.def.Zone, l.def.DatesIgnored, l.def.SearchIgnored, l.def.Uncounted, l.def.api
	if chance(random, 15) {
		e.Where = []formservice.Condition{{Column: "result_status", Operator: formservice.Equals, Term: "Complete"}}
	}
	if chance(random, 40) && !e.DatesIgnored {
		e.from = l.people.date(l.now).Truncate(24 * time.Hour)
		e.to = e.from.AddDate(0, 0, 1+random.IntN(20))
	}
	o := &output{codebook: true}
	o.Extension = pick(random, ".csv", ".csv.gz", ".ndjson", ".json", ".parquet", ".arrow", ".csv.zst")
	o.Dir, o.Name = filepath.Join(l.site.dir, "export"), "export"+o.Extension
	e.outputs = []*output{o}
	return e
}

// exportArguments are those of the command line of formetl export.
func (d *definition) exportArguments(serviceURL string) []string {
	args := []string{
		"export", "--api", d.api, "--base-url", serviceURL, "--account", "acme", "--timezone", d.Zone.String(), "--form", formName,
		"-o", filepath.Join("export", d.outputs[0].Name), "--names", d.names, "--codebook", "--manifest", "--requests-per-minute", "0",
	}
	if !d.from.IsZero() {
		args = append(args, "--from", d.from.Format(formservice.WallTime), "--to", d.to.Format(formservice.WallTime))
	}
	for _, c := range d.Where {
		args = append(args, "--where", c.Column+":"+string(c.Operator)+"="+c.Term)
	}
	return args
}

// arguments are those of a step's command line.
func (l *life) arguments(s *step, report string) []string {
	common := []string{"--log-format", "json"}
	reported := append([]string{"--report", report, "--progress", "off"}, common...)
	switch s.kind {
	case stepExport:
		return append(l.export.exportArguments(l.service.URL), reported...)
	case stepClean:
		return append([]string{"clean", l.def.file}, common...)
	case stepCleanUnlisted:
		return append([]string{"clean", l.def.file, "--unlisted"}, common...)
	case stepReset:
		return append([]string{"state", "reset", l.def.file, "--yes"}, common...)
	case stepReplay:
		return append([]string{"replay", l.def.file}, reported...)
	}
	args := append([]string{"run", l.def.file}, reported...)
	switch s.kind {
	case stepFull:
		args = append(args, "--full")
	case stepRange:
		args = append(args, "--from", s.from.Format(formservice.WallTime), "--to", s.to.Format(formservice.WallTime))
	}
	return args
}
