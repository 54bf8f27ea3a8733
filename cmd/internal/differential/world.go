package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// now is when worlds begin. Clocks were changed in each zone during the weeks before.
var now = time.Date(2026, 4, 7, 20, 0, 0, 0, time.UTC)

// world is what both programs meet alike. It follows from its number alone. URL
// stands for the address of the service.
type world struct {
	*rand.Rand
	api, definition, schema string
	zone                    *time.Location
	service                 formservice.Faults
	makeForm                func() *formservice.Form
	points                  []string // where runs may kill themselves
	steps                   []step
}

// step is a command and what happens before and during it.
type step struct {
	command, kill string            // a command, and the point at which its process kills itself
	lot           int               // minutes since the step before it; also chooses what changes before it
	weather       formservice.Fault // what some requests meet
}

// pick gives one of several, or nothing, which counts as so many of them.
func (w *world) pick(nothing int, of ...string) string {
	return append(of, make([]string, nothing)...)[w.IntN(len(of)+nothing)]
}

// newWorld makes the world of a number.
func newWorld(number int) *world {
	w := &world{Rand: rand.New(rand.NewPCG(1, uint64(number)))} //nolint:gosec // nobody must be surprised
	w.api, w.zone = w.pick(0, "v1", "v2"), must(time.LoadLocation(w.pick(0, "UTC", "America/Chicago", "Europe/Berlin", "Australia/Lord_Howe")))
	w.service = must(formservice.ParseFaults(w.pick(10, "no-gzip", "headings=nested", "page-cap=37", "errors-200", "bare-max-midnight", "ignore-sort", "lack-update=3", "ignore-search",
		"twice=50", "count-off=2", "unsorted", "ignore-dates", "ignore-min-id", "page-504=50", "cut-pages=20", "clock-off=-5m", "old-root", "latin1", "control=raw", "strict-limit",
		"v2-number-ids", "v2-fractions=random", "v2-pagination=missing", "v2-hide-id", "v2-strict-dates", "v2-own-positions", "v2-mix-values")))
	o := formservice.GenerateOptions{Seed: w.Uint64(), Results: []int{0, 3, 30, 100, 101, 250, 600}[w.IntN(7)], Items: []int{5, 14, 30}[w.IntN(3)], From: now.AddDate(0, 0, -3-w.IntN(42)), To: now.Add(-16 * time.Hour), Control: w.IntN(3) == 0}
	w.makeForm = func() *formservice.Form { return formservice.Generate(o) }
	w.define()
	w.declare()
	w.addSteps()
	return w
}

// define writes the definition.
func (w *world) define() {
	lines := []string{
		"version: 1", "name: net", "forms: [form1]", "state: state", "names: " + w.pick(0, "id", "label"), w.pick(1, "schema: schema.yaml"),
		"source: {api: " + w.api + ", base_url: URL, account: acme, timezone: " + w.zone.String() + ", requests: {concurrency: " + w.pick(0, "1", "4") + ", per_minute: 0, per_day: 0}}",
		"extract:", "  window: " + w.pick(0, "auto", "auto", "1d", "7d", "1mo"), "  verify: " + w.pick(0, "true", "true", "true", "true", "false", "required"),
		w.pick(1, "  from: 2026-03-01", "  from: 2026-04-01"), w.pick(18, "  view: 101", "  view: 102"), w.pick(9, "  custom_labels: 10"),
		w.pick(14, "  search: {match: or, where: [{column: result_status, equals: Complete}, {column: '1', contains: a}]}", "  search: {where: [{column: result_status, equals: Complete}]}"),
	}
	formats := []string{"csv", "csv, compression: gzip", "ndjson, compression: zstd", "parquet", "parquet, compression: snappy", "arrow", "arrow, codebook: false"}
	path := "  - {path: lake%d/, partition: " + w.pick(0, "none", "day", "month", "year") + ", format: %s}"
	if w.IntN(10) < 6 {
		lines = append(lines, "  mode: incremental", "  lookback: "+w.pick(0, "1d", "3d"), w.pick(4, "  changes: lookback"), w.pick(2, "  settle: 1m"))
	} else if lines = append(lines, w.pick(2, "  to: 2026-04-08")); w.IntN(4) > 0 {
		formats = []string{"csv", "csv, csv: {profile: excel}", "tsv", "csv.gz", "csv.zst", "ndjson", "ndjson.gz", "json", "parquet", "arrow", "xlsx", "xlsx, codebook: false"}
		path = "  - {path: out/file%d.%s}"
	}
	outputs := 1 + w.IntN(2)
	if outputs == 1 { // several are committed side by side, so that chance decides what a kill leaves
		w.points = strings.Fields("planned read verified snapshot check staged prepared intent unmark parts manifest supersede mark close objects codebook")
	}
	lines = append(lines, "load:")
	for i := range outputs {
		lines = append(lines, fmt.Sprintf(path, i, w.pick(0, formats...)))
	}
	w.definition = strings.Join(lines, "\n")
}

// declare writes a schema file with some of the form's items.
func (w *world) declare() {
	w.schema = strings.Join([]string{
		"version: 1", "name: net", "unknown: " + w.pick(0, "add", "ignore"), "max_rejects: " + w.pick(0, "5", "9999", "9999"), "empty: " + w.pick(0, "keep", "as_null"), "columns:",
		"  - {name: id, from: result_id, type: int64}", "  - {name: finished, from: 'meta:date_finish', type: timestamp, on_error: set_null}",
	}, "\n")
	texts := []string{"string", "string", "string, pii: redact", "string, pii: truncate(3)", "string, pii: drop", "string, label: A label", "string, on_error: reject"}
	lists := []string{"'list<string>'", "'list<string>', list_as: json", "'list<string>', list_as: columns", "'list<string>', explode: true"}
	numbers := []string{"int64", "float64, on_error: set_null", "'decimal(12,2)'"}
	types := map[string][]string{
		"text": texts, "textarea": texts, "zip": texts, "radio": texts, "select": texts, "matrix": texts, "file": texts,
		"checkbox": lists, "list": lists, "number": numbers, "decimal": numbers, "date": {"date", "date, on_error: set_null"},
	}
	for i, it := range w.makeForm().Items {
		w.schema += w.pick(1, fmt.Sprintf("\n  - {name: c%d, from: 'item:%s', type: %s}", i, it.ID, w.pick(0, types[it.Type]...)))
	}
}

// runs are the commands that read results, those that are used more often more than once.
var runs = []string{"run net.yaml", "run net.yaml", "run net.yaml --full", "run net.yaml --from 2026-03-10 --to 2026-04-05T12:00:00", "replay net.yaml"}

// looks are the other commands about a definition.
var looks = []string{
	"verify net.yaml --against-service", "state show net.yaml", "validate net.yaml", "schema show net.yaml", "schema diff net.yaml", "schema ddl net.yaml --dialect postgres",
	"schema ddl net.yaml --dialect snowflake", "count net.yaml --form form1", "preview net.yaml --json", "plan net.yaml --json --to 2026-04-09", "state reset net.yaml --yes",
}

// addSteps chooses the commands. A run that may have been killed is followed by another.
func (w *world) addSteps() {
	add := func(command, weather, kill string) {
		w.steps = append(w.steps, step{command: command, lot: 1 + w.IntN(30*60), weather: formservice.Fault(weather), kill: kill})
	}
	add("run net.yaml --report report.json", "", "")
	for range 4 + w.IntN(4) {
		switch n := w.IntN(100); {
		case n < 15:
			add("export --base-url URL --account acme --form form1 --report report.json --requests-per-minute 0 --api "+w.api+" --timezone "+w.zone.String()+" --names "+w.pick(0, "label", "id")+
				" -o "+w.pick(0, "-", "a.csv --manifest", "a.tsv", "a.csv.gz", "a.ndjson --codebook", "a.json", "a.parquet", "a.arrow", "a.xlsx")+
				w.pick(3, " --limit 7", " --where result_status:equals=Complete", " --view 101", " --from 2026-03-20 --to 2026-04-06"), "", "")
		case n < 35:
			add(w.pick(0, looks...), "", "")
		default:
			add(w.pick(0, runs...)+" --report report.json", w.pick(12, "busy", "cut", "truncate", "html", "empty", "redirect"), w.pick(12, w.points...))
			add("run net.yaml --report report.json", "", "")
		}
	}
	for _, command := range []string{"run net.yaml --report report.json", "verify net.yaml --json", "state show net.yaml --json", "clean net.yaml"} {
		add(command, "", "")
	}
}
