package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/campaign/model"
	"github.com/formetl/formetl/cmd/internal/readback"
	"github.com/formetl/formetl/extract/formservice"
)

// definition is a pipeline's definition: what formetl is told and what the
// oracle knows of it.
type definition struct {
	model.Definition
	file        string // where it lies
	api         string
	concurrency int
	retries     int
	names       string
	from, to    time.Time // wall clock, zero: none
	window      string
	incremental bool
	lookback    int  // hours
	byLookback  bool // changes: lookback
	perDay      int  // requests, 0: plenty
	verify      bool
	explode     string // name of a declared list that has child outputs
	outputs     []*output

	// unfinished is the moment at which the first run began that a later one may
	// resume from; none where the last one ended well.
	unfinished model.Moment
	few        bool      // too few of its results were there to show that the service sorts
	unread     time.Time // such runs took nothing over that is dated from here on
	undated    bool      // such a run read results without a date
	ranged     bool      // the last run that ended well had a range of its own
	// narrowed are the ranges of such runs that were given one by flags.
	narrowed []readback.Span
}

// counted tells whether the service counts what the definition reads, and is asked.
func (d *definition) counted() bool { return d.Verified() && d.verify && !d.Uncounted }

// plenty is more requests than a life sends in a day. They are booked all the same.
const plenty = 100_000

// maxRejects is more than a life ever rejects.
const maxRejects = 100_000

// none is no moment.
const none model.Moment = -1

// output is an output with what the definition says of it.
type output struct {
	model.Output
	path        string // as the definition has it
	format      string
	compression string
	codebook    bool
	last        *model.Look
	damaged     bool      // by somebody, and not healed yet
	mark        time.Time // the watermark that was seen last
	latest      time.Time // up to which clocks let a watermark be, of the runs so far
	// reach is the time up to which runs may have read without a gap.
	reach time.Time
	// blind is the moment up to which results before the lookback may have changed
	// unnoticed, because nobody knew what had.
	blind model.Moment
}

// newDefinition chooses a definition for a form. If it follows, its runs are incremental,
// count what they read, and ask the service what changed. Hourly runs are incremental too.
func (s *site) newDefinition(random *rand.Rand, p *people, now time.Time, follows, hourly bool) *definition {
	d := &definition{
		file: filepath.Join(s.dir, "campaign.yaml"), concurrency: 1 + random.IntN(8), retries: 4 + random.IntN(6),
		names: pick(random, "id", "id", "label"), window: "auto", lookback: 24 * (1 + random.IntN(5)), verify: !chance(random, 20), unfinished: none,
	}
	d.Zone, d.api = p.zone, p.api
	switch {
	case chance(random, 12):
		d.Where, d.Any = newSearch(random, p), chance(random, 50)
	case chance(random, 8):
		d.View = &p.form.Served.Views[0]
	}
	if chance(random, 40) {
		d.declare(random, p)
	}
	if chance(random, 45) {
		d.from = wall(p.begin.Add(time.Duration(random.Int64N(int64(now.Sub(p.begin))/2))), p.zone)
		if chance(random, 70) {
			d.from = d.from.Truncate(24 * time.Hour)
		}
	}
	if chance(random, 20) {
		d.to = wall(now.Add(time.Duration(random.IntN(200)-30)*time.Hour), p.zone) // runs may not reach it
		if !d.from.IsZero() && !d.from.Before(d.to) {
			d.to = d.from.AddDate(0, 0, 1)
		}
	}
	if chance(random, 40) {
		d.window = pick(random, "6h", "1d", "7d", "1mo")
	}
	if d.window == "6h" && (d.from.IsZero() || now.Sub(p.begin) > 10*24*time.Hour) {
		d.window = "1d" // no more windows than somebody would ask for
	}
	d.incremental = d.to.IsZero() && chance(random, 45)
	if follows {
		d.Where, d.View, d.to, d.verify, d.incremental = nil, nil, time.Time{}, true, true
	}
	if hourly {
		d.to, d.incremental, d.lookback = time.Time{}, true, d.lookback/12+random.IntN(2) // 2 to 11 hours
	}
	s.newOutputs(random, d)
	return d
}

// follow chooses how a definition finds what changed.
func (d *definition) follow(random *rand.Rand, follows bool) {
	d.byLookback = chance(random, 15) && !follows
}

// reads is a span that runs of a definition read for sure, whenever they begin.
func (d *definition) reads(now time.Time) readback.Span {
	now = wall(now, d.Zone)
	s := readback.Span{From: readback.WallTime{Time: d.from}, To: readback.WallTime{Time: d.to}}
	if recent := now.AddDate(0, 0, -2); d.to.IsZero() || d.to.After(recent) {
		s.To.Time = recent // what is newer may lie behind the end of a range that a run began with
	}
	if since := now.Add(-time.Duration(d.lookback) * time.Hour); d.incremental && s.From.Before(since) {
		s.From.Time = since
	}
	return s
}

// newSearch is one condition or two.
func newSearch(random *rand.Rand, p *people) []formservice.Condition {
	status := formservice.Condition{Column: "result_status", Operator: formservice.Equals, Term: "Complete"}
	known := p.items[:len(p.items)-p.late]
	if len(known) == 0 || !chance(random, 50) {
		return []formservice.Condition{status}
	}
	it := known[random.IntN(len(known))]
	c := formservice.Condition{Column: it.ID, Operator: pick(random, formservice.Empty, formservice.NotEmpty, formservice.Contains), Term: "a"}
	if p.api == formservice.V2 { // it searches texts for what they hold, and choices by equals alone
		if c.Operator = formservice.Contains; it.Choices != nil {
			return []formservice.Condition{status}
		}
	}
	return []formservice.Condition{status, c}
}

// declare gives the definition a schema of its own.
func (d *definition) declare(random *rand.Rand, p *people) {
	d.Ignore = chance(random, 40)
	d.Columns = []model.Column{
		{Name: "id", From: "result_id", Type: "int64"},
		{Name: "status", From: "meta:result_status", Type: "string"},
		{Name: "finished", From: "meta:date_finish", Type: "timestamp", OnError: "set_null"},
	}
	for _, it := range p.items {
		if chance(random, 25) {
			continue
		}
		c := model.Column{Name: "c" + strings.ReplaceAll(it.ID, "-", "_"), From: "item:" + it.ID, Type: "string", OnError: pick(random, "set_null", "set_null", "reject")}
		switch it.Type {
		case "checkbox", "list":
			if c.Type = "list<string>"; d.explode == "" && chance(random, 25) {
				d.explode = c.Name
			}
		case "number":
			c.Type = pick(random, "int64", "string")
		case "date":
			c.Type = "date"
		}
		d.Columns = append(d.Columns, c)
	}
}

// newOutputs chooses one to three outputs. An incremental definition has
// datasets only.
func (s *site) newOutputs(random *rand.Rand, d *definition) {
	for n := range 1 + random.IntN(3) {
		o := &output{codebook: !chance(random, 25), blind: none}
		o.Partition = pick(random, "none", "day", "month")
		if table := s.database != nil && chance(source(s.seed, 20+uint64(n)), 70); table { //nolint:gosec // counted from 0
			s.table(source(s.seed, 30+uint64(n)), o, n) //nolint:gosec // counted from 0
			d.add(o)
			continue
		}
		if d.incremental || chance(random, 50) {
			o.format = pick(random, "csv", "ndjson", "parquet", "arrow")
			o.compression = compressionOf(random, o.format)
			o.Extension = "." + o.format + map[string]string{"gzip": ".gz", "zstd": ".zst"}[textOnly(o)]
			s.place(random, o, fmt.Sprintf("lake%d", n))
		} else {
			o.Extension = pick(random, ".csv", ".csv", ".csv.gz", ".csv.zst", ".ndjson", ".ndjson.gz", ".json", ".parquet", ".arrow", ".parquet", ".arrow")
			o.Name = fmt.Sprintf("file%d%s", n, o.Extension)
			s.place(random, o, "out")
		}
		d.add(o)
	}
}

// add adds an output, and that of an exploded list.
func (d *definition) add(o *output) {
	d.outputs = append(d.outputs, o)
	if d.explode != "" {
		d.outputs = append(d.outputs, o.child(d.explode))
	}
}

// table makes an output a table of the life's database.
func (s *site) table(random *rand.Rand, o *output, n int) {
	o.DSN, o.Dir, o.path, o.Extension = s.database.own(), fmt.Sprintf("forms.%s_%d", formName, n), fmt.Sprintf("forms.{form}_%d", n), ".ndjson"
	o.Soft, o.Audit = chance(random, 40), chance(random, 40)
}

// place says where an output lies: beside the definition, or in the bucket.
func (s *site) place(random *rand.Rand, o *output, folder string) {
	if onDisk := chance(random, 30); onDisk || s.bucket == nil {
		o.Dir, o.path = filepath.Join(s.dir, folder), folder+"/"+o.Name
		return
	}
	prefix := fmt.Sprintf("life%d-%s/%s", s.seed, filepath.Base(s.dir), folder)
	o.Dir, o.path = filepath.Join(s.bucket.folder, prefix), "s3://"+bucketName+"/"+prefix+"/"+o.Name
}

// compressionOf chooses a codec that a format of datasets knows, or none.
func compressionOf(random *rand.Rand, format string) string {
	switch format {
	case "parquet":
		return pick(random, "", "none", "gzip", "zstd", "snappy")
	case "arrow":
		return pick(random, "", "none", "zstd")
	}
	return pick(random, "", "none", "gzip", "zstd")
}

// textOnly is the codec around a part of text.
func textOnly(o *output) string {
	if o.format == "csv" || o.format == "ndjson" {
		return o.compression
	}
	return ""
}

// child is the output of an exploded list beside an output.
func (o *output) child(list string) *output {
	c := *o
	c.Explode, c.codebook = list, false
	if o.Dataset() {
		c.Dir += "__" + list
	} else {
		c.Name = strings.TrimSuffix(o.Name, o.Extension) + "__" + list + o.Extension
	}
	return &c
}

// text is the definition as formetl reads it.
func (d *definition) text(at *service, in *bucket) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\nname: campaign\nsource: {api: %s, base_url: %q, account: acme, timezone: %s, requests: {concurrency: %d, retries: %d, per_minute: 0, per_day: %d}}\n",
		d.api, at.URL, d.Zone, d.concurrency, d.retries, cmp.Or(d.perDay, plenty))
	fmt.Fprintf(&b, "forms: [%s]\nstate: state\nnames: %s\nextract:\n  window: %s\n  verify: %t\n", formName, d.names, d.window, d.verify)
	if !d.from.IsZero() {
		fmt.Fprintf(&b, "  from: %q\n", d.from.Format(formservice.WallTime))
	}
	if !d.to.IsZero() {
		fmt.Fprintf(&b, "  to: %q\n", d.to.Format(formservice.WallTime))
	}
	if d.incremental {
		fmt.Fprintf(&b, "  mode: incremental\n  lookback: %dh\n", d.lookback)
	}
	if d.byLookback {
		b.WriteString("  changes: lookback\n")
	}
	if d.View != nil {
		fmt.Fprintf(&b, "  view: %s\n", d.View.ID)
	}
	d.search(&b)
	d.schema(&b)
	b.WriteString("load:\n")
	for _, o := range d.outputs {
		o.text(&b, in)
	}
	return b.String()
}

func (d *definition) search(b *strings.Builder) {
	if len(d.Where) == 0 {
		return
	}
	fmt.Fprintf(b, "  search:\n    match: %s\n    where:\n", map[bool]string{true: "or", false: "and"}[d.Any])
	for _, c := range d.Where {
		term := fmt.Sprintf("%q", c.Term)
		if c.Operator == formservice.Empty || c.Operator == formservice.NotEmpty {
			term = "true"
		}
		fmt.Fprintf(b, "      - {column: %q, %s: %s}\n", c.Column, c.Operator, term)
	}
}

func (d *definition) schema(b *strings.Builder) {
	if d.Columns == nil {
		return
	}
	fmt.Fprintf(b, "schema:\n  unknown: %s\n  max_rejects: %d\n  columns:\n", map[bool]string{true: "ignore", false: "add"}[d.Ignore], maxRejects)
	for _, c := range d.Columns {
		more := ""
		if c.OnError != "" {
			more = ", on_error: " + c.OnError
		}
		if c.Name == d.explode {
			more += ", explode: true"
		}
		fmt.Fprintf(b, "    - {name: %s, from: %q, type: %q%s}\n", c.Name, c.From, c.Type, more)
	}
}

func (o *output) text(b *strings.Builder, in *bucket) {
	if o.Explode != "" {
		return // it follows from the schema
	}
	if o.DSN != "" {
		fmt.Fprintf(b, "  - {database: postgres, dsn: \"${env:PG}\", table: %q, partition: %s, soft_delete: %t, audit: %t}\n", o.path, o.Partition, o.Soft, o.Audit)
		return
	}
	fmt.Fprintf(b, "  - path: %s\n    codebook: %t\n", o.path, o.codebook)
	if o.Dataset() {
		fmt.Fprintf(b, "    format: %s\n    partition: %s\n", o.format, o.Partition)
		if o.compression != "" {
			fmt.Fprintf(b, "    compression: %s\n", o.compression)
		}
	}
	if strings.HasPrefix(o.path, "s3://") {
		fmt.Fprintf(b, "    s3: {endpoint: %q, path_style: true, region: us-east-1}\n", in.URL)
	}
}
