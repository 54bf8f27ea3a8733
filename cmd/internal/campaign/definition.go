package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/formetl/formetl/extract"
)

// definition is what formetl is told, and what the oracle has seen of the runs so far.
type definition struct {
	zone        *time.Location
	api         string
	concurrency int
	retries     int
	names       string
	complete    bool // only results whose status is Complete
	from, to    time.Time
	window      string
	incremental bool
	lookback    int  // hours
	byLookback  bool // changes: lookback
	verify      bool
	uncounted   bool     // the service's answers tell no counts
	columns     []column // declared; nil: inferred
	ignore      bool     // unknown: ignore, else add
	explode     string   // name of a declared list that has child outputs
	files       bool     // uploaded files are stored
	outputs     []*output

	// unfinished is the moment at which the first run began that a later one may
	// resume from; never where the last one ended well.
	unfinished moment
	undated    bool             // such a run read results without a date
	narrowed   []extract.Window // the ranges of such runs that were given one by flags
}

// column is a declared column.
type column struct{ name, from, kind, onError string }

// counted tells whether the service counts what the definition reads, and is asked. It does
// not count searches.
func (d *definition) counted() bool { return !d.complete && d.verify && !d.uncounted }

// output is where a definition writes to: a folder on disk, be it that of an S3 server, or a
// table of a database, which is looked at as a dataset.
type output struct {
	dsn       string // of a table, whose name with its schema is dir; else ""
	soft      bool   // a table keeps the rows of vanished results
	audit     bool   // rows of a table tell the run that changed them
	dir       string // the dataset, or where the single file lies
	name      string // of a single file; "" for a dataset
	path      string // as the definition has it
	partition string // of a dataset
	extension string // of data, with its dot
	explode   string // of a child output the name of its list

	last  *look     // what was there after the last process
	mark  time.Time // the watermark that was seen last
	reach time.Time // up to which runs may have read without a gap
	// blind is the moment up to which results before the lookback may have changed
	// unnoticed, because nobody knew what had.
	blind moment
}

func (o *output) dataset() bool  { return o.name == "" }
func (o *output) String() string { return filepath.Join(o.dir, o.name) }

// newDefinition chooses a definition for a form. If it follows, its runs are incremental,
// count what they read, and ask the service what changed.
func (l *life) newDefinition(random *rand.Rand, api string, follows bool) *definition {
	p := l.people
	d := &definition{
		zone: p.zone, api: api, concurrency: 1 + random.IntN(8), retries: 4 + random.IntN(6), names: pick(random, "id", "id", "label"), window: "auto",
		lookback: pick(random, 2, 5, 11, 24, 72), byLookback: chance(random, 15), complete: chance(random, 15), verify: !chance(random, 20), unfinished: never,
	}
	if chance(random, 40) {
		d.declare(random, p)
	}
	if chance(random, 45) {
		d.from = wall(p.begin.Add(time.Duration(random.Int64N(int64(l.now.Sub(p.begin))/2))), p.zone)
		if chance(random, 70) {
			d.from = d.from.Truncate(24 * time.Hour)
		}
	}
	if chance(random, 20) {
		d.to = wall(l.now.Add(time.Duration(random.IntN(190)-20)*time.Hour), p.zone) // runs may not reach it
	}
	if chance(random, 40) {
		d.window = pick(random, "1d", "7d", "1mo")
	}
	d.incremental = d.to.IsZero() && chance(random, 45)
	if follows {
		d.byLookback, d.complete, d.to, d.verify, d.incremental = false, false, time.Time{}, true, true
	}
	for n := range 1 + random.IntN(3) {
		d.add(l.newOutput(random, d.incremental, n))
	}
	d.files = d.explode == "" && chance(random, 30)
	return d
}

// declare gives the definition a schema of its own.
func (d *definition) declare(random *rand.Rand, p *people) {
	d.ignore = chance(random, 40)
	d.columns = []column{{"id", "result_id", "int64", ""}, {"status", "meta:result_status", "string", ""}, {"finished", "meta:date_finish", "timestamp", "set_null"}}
	for _, it := range p.items {
		if chance(random, 25) {
			continue
		}
		c := column{"c" + strings.ReplaceAll(it.ID, "-", "_"), "item:" + it.ID, "string", pick(random, "set_null", "set_null", "reject")}
		switch {
		case several(it.Type):
			if c.kind = "list<string>"; d.explode == "" && chance(random, 25) {
				d.explode = c.name
			}
		case it.Type == "number":
			c.kind = pick(random, "int64", "string")
		case it.Type == "date":
			c.kind = "date"
		}
		d.columns = append(d.columns, c)
	}
}

// newOutput chooses an output. An incremental definition has datasets and tables only.
func (l *life) newOutput(random *rand.Rand, incremental bool, n int) *output {
	o := &output{blind: never, extension: pick(random, ".csv", ".ndjson", ".parquet"), partition: pick(random, "none", "day", "month")}
	switch {
	case l.database != nil && chance(random, 70):
		o.extension = "" // a table has no files
		o.dsn, o.dir, o.path = l.database.dsn(), fmt.Sprintf("forms.%s_%d", formName, n), fmt.Sprintf("forms.{form}_%d", n)
		o.soft, o.audit = chance(random, 40), chance(random, 40)
	case incremental || chance(random, 50):
		l.place(random, o, fmt.Sprintf("lake%d", n))
	default:
		o.name = fmt.Sprintf("file%d%s", n, o.extension)
		l.place(random, o, "out")
	}
	return o
}

// place says where an output lies: beside the definition, or in the bucket.
func (l *life) place(random *rand.Rand, o *output, folder string) {
	o.dir, o.path = filepath.Join(l.dir, folder), folder+"/"+o.name
	if l.bucket != nil && chance(random, 70) {
		prefix := filepath.Base(l.dir) + "/" + folder
		o.dir, o.path = filepath.Join(l.bucket.folder, prefix), "s3://"+bucketName+"/"+prefix+"/"+o.name
	}
}

// add adds an output, and the child output of an exploded list beside it.
func (d *definition) add(o *output) {
	d.outputs = append(d.outputs, o)
	if d.explode == "" {
		return
	}
	c := *o
	if c.explode = d.explode; o.dataset() {
		c.dir += "__" + d.explode
	} else {
		c.name = strings.TrimSuffix(o.name, o.extension) + "__" + d.explode + o.extension
	}
	d.outputs = append(d.outputs, &c)
}

// text is the definition as formetl reads it.
func (d *definition) text(serviceURL string, in *bucket) string {
	var b strings.Builder
	say := func(when bool, format string, values ...any) {
		if when {
			fmt.Fprintf(&b, format, values...)
		}
	}
	say(true, "version: 1\nname: campaign\nsource: {api: %s, base_url: %q, account: acme, timezone: %s, requests: {concurrency: %d, retries: %d, per_minute: 0}}\n",
		d.api, serviceURL, d.zone, d.concurrency, d.retries)
	say(true, "forms: [%s]\nstate: state\nnames: %s\nextract:\n  window: %s\n  verify: %t\n", formName, d.names, d.window, d.verify)
	say(!d.from.IsZero(), "  from: %q\n", stamp(d.from))
	say(!d.to.IsZero(), "  to: %q\n", stamp(d.to))
	say(d.incremental, "  mode: incremental\n  lookback: %dh\n", d.lookback)
	say(d.byLookback, "  changes: lookback\n")
	say(d.complete, "  search: {where: [{column: result_status, equals: Complete}]}\n")
	say(d.columns != nil, "schema:\n  unknown: %s\n  max_rejects: 100000\n  columns:\n", map[bool]string{true: "ignore", false: "add"}[d.ignore])
	for _, c := range d.columns {
		say(true, "    - {name: %s, from: %q, type: %q", c.name, c.from, c.kind)
		say(c.onError != "", ", on_error: %s", c.onError)
		say(true, ", explode: %t}\n", c.name == d.explode)
	}
	say(d.files, "files: {path: files/}\n")
	say(true, "load:\n")
	for _, o := range d.outputs {
		switch {
		case o.explode != "": // it follows from the schema
		case o.dsn != "":
			say(true, "  - {database: postgres, dsn: \"${env:PG}\", table: %q, partition: %s, soft_delete: %t, audit: %t}\n", o.path, o.partition, o.soft, o.audit)
		default:
			say(true, "  - path: %s\n", o.path)
			say(o.dataset(), "    format: %s\n    partition: %s\n", o.extension[1:], o.partition)
			if strings.HasPrefix(o.path, "s3://") {
				say(true, "    s3: {endpoint: %q, path_style: true, region: us-east-1}\n", in.URL)
			}
		}
	}
	return b.String()
}

// reads is a span that runs of a definition read for sure, whenever they begin.
func (d *definition) reads(now time.Time) extract.Window {
	now = wall(now, d.zone)
	w := extract.Window{From: d.from, To: d.to}
	if recent := now.AddDate(0, 0, -2); d.to.IsZero() || d.to.After(recent) {
		w.To = recent // what is newer may lie behind the end of a range that a run began with
	}
	if since := now.Add(-time.Duration(d.lookback) * time.Hour); d.incremental && w.From.Before(since) {
		w.From = since
	}
	return w
}
