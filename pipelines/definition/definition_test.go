package definition

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// testFormats are the formats of contract.md; their encoders are not needed.
func testFormats() []load.Format {
	return []load.Format{
		{Name: "csv", Extension: ".csv", Text: true, Profiles: true},
		{Name: "ndjson", Extension: ".ndjson", Text: true},
		{Name: "json", Extension: ".json", Text: true, FileOnly: true},
		{Name: "parquet", Extension: ".parquet", Codecs: []string{"zstd", "gzip", "snappy"}},
		{Name: "arrow", Extension: ".arrow", Codecs: []string{"zstd"}},
		{Name: "xlsx", Extension: ".xlsx", FileOnly: true},
	}
}

// canary is the API key of every test here; no error may hold it.
const canary = "k9-CANARY/71+x"

func testOptions() LoadOptions {
	return LoadOptions{
		Formats: testFormats(),
		Schemes: []string{"s3"},
		Databases: []DatabaseKind{{Name: "postgres", Schema: "public", CheckNames: func(table string, columns []string) error {
			if strings.HasSuffix(table, "__refused") || len(slices.Compact(slices.Sorted(slices.Values(columns)))) < len(columns) {
				return errors.New("this is no name here")
			}
			return nil
		}, Address: func(dsn string) (string, error) {
			if strings.Contains(dsn, "broken") {
				return "", errors.New("it is no connection string")
			}
			return "postgres://db.example.com/warehouse", nil
		}}},
		Secrets: Secrets{Lookup: func(name string) (string, bool) {
			switch name {
			case KeyVariable:
				return canary, true
			case "PG":
				return `it's a\b/?+`, true
			case "EMPTY":
				return " \n", true
			case "TWO_LINES":
				return canary + "\nsecond", true
			}
			return "", false
		}},
	}
}

const fullDefinition = `version: 1
name: feedback
source:
  base_url: https://fs1.example.com/
  account: acme
  api_key: ${env:FORMETL_API_KEY}
  timezone: America/Chicago
  allow_http: false
  requests:
    concurrency: 7
    per_minute: 50
    per_day: 10000
    timeout: 45s
    retries: 3
    patience: 90s
    max_requests: 5000
forms: [form1, survey-*, 007, {name: orders, from: 2026-02-01, schema: orders.yaml}]
exclude: [survey-test]
state: {path: s3://bucket/state/, s3: {region: eu-west-1, endpoint: https://s3.example.com}}
names: label
extract:
  from: 2026-01-01
  to: 2026-03-01 06:30:00
  settle: 5m
  window: 6h
  mode: incremental
  lookback: 1d12h
  changes: lookback
  view: 11
  custom_labels: "2"
  search:
    match: or
    where:
      - {column: result_status, equals: Complete}
      - {column: 012, contains: 5}
      - {column: "12", not_empty: true}
  verify: false
schema:
  name: own
  unknown: fail
  max_rejects: 3
  empty: as_null
  columns:
    - {name: id, from: result_id, type: int64}
    - {name: price, from: "item:4", type: "decimal(12,2)", on_error: set_null, label: "Price\nin €"}
files:
  path: s3://bucket/files/{form}/
  s3: {region: eu-west-1}
  max_bytes: 50MB
  concurrency: 2
  hosts: [files.example.com]
  keep_deleted: true
load:
  - path: out/{form}/
    format: csv
    csv: {profile: excel}
    partition: month
    compression: gzip
  - path: s3://bucket/lake/{form}/
    format: parquet
    partition: day
    compression: zstd
    s3:
      endpoint: "http://127.0.0.1:9000"
      region: us-east-1
      path_style: true
      sse: kms
      kms_key_id: alias/forms
      part_size: 16MiB
      parts_in_flight: 2
`

func TestFullDefinition(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "pipelines", "feedback.yaml")
	d, err := Parse(file, []byte(fullDefinition), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	zone, _ := time.LoadLocation("America/Chicago")
	want := &Definition{
		File: file, Name: "feedback", Forms: []string{"form1", "survey-*", "007", "orders"}, Exclude: []string{"survey-test"},
		State: "s3://bucket/state/", StateS3: &S3{Region: "eu-west-1", Endpoint: "https://s3.example.com"}, Names: schemas.ByLabel,
		Source: Source{
			BaseURL: "https://fs1.example.com", Account: "acme", Key: transport.NewSecret(canary).From("the environment variable FORMETL_API_KEY"), Zone: zone,
			Requests: Requests{Concurrency: 7, PerMinute: 50, PerDay: 10000, OwnBudgets: true, Timeout: 45 * time.Second, Retries: 3, Patience: 90 * time.Second, MaxRequests: 5000},
		},
		Extract: Extract{
			From:   time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
			To:     time.Date(2026, 3, 1, 6, 30, 0, 0, time.UTC),
			Settle: 5 * time.Minute, Window: extract.Period{Seconds: 6 * 3600}, Incremental: true, Lookback: 36 * time.Hour,
			Changes: ChangesLookback,
			View:    "11", CustomLabels: "2",
			Search: extract.Search{Any: true, Where: []extract.Criterion{
				{Column: "result_status", Operator: extract.OpEquals, Term: "Complete"},
				{Column: "012", Operator: extract.OpContains, Term: "5"},
				{Column: "12", Operator: extract.OpNotEmpty},
			}},
		},
		Schema: &schemas.Schema{
			Name: "own", Unknown: schemas.UnknownFail, MaxRejects: 3, Empty: schemas.EmptyAsNull,
			Columns: []schemas.Column{
				{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}, OnError: schemas.OnErrorReject},
				{
					Name: "price", From: schemas.Source{Kind: schemas.FromItem, ID: "4"}, OnError: schemas.OnErrorSetNull,
					Type: schemas.Type{Kind: schemas.Decimal, Precision: 12, Scale: 2}, Label: "Price\nin €",
				},
			},
		},
		Files: &Files{
			Path: "s3://bucket/files/{form}/", S3: &S3{Region: "eu-west-1"}, MaxBytes: 50_000_000, Concurrency: 2, Hosts: []string{"files.example.com"}, KeepDeleted: true,
		},
		Outputs: []Output{
			{Path: filepath.Join(dir, "pipelines", "out", "{form}") + "/", Format: "csv", Compression: "gzip", Profile: "excel", Partition: PartitionMonth},
			{
				Path: "s3://bucket/lake/{form}/", Format: "parquet", Compression: "zstd", Partition: PartitionDay,
				S3: &S3{
					Endpoint: "http://127.0.0.1:9000", Region: "us-east-1", PathStyle: true,
					SSE: "kms", KMSKeyID: "alias/forms",
					PartSize: 16 << 20, PartsInFlight: 2,
				},
			},
		},
	}
	if err := want.Explode(); err != nil { // the lists of files
		t.Fatal(err)
	}
	d.Warnings, d.perForm = nil, nil // TestWarnings, TestFor
	if !reflect.DeepEqual(d, want) {
		t.Errorf("got  %+v\nwant %+v", d, want)
	}
}

// minimal is the shortest definition; tests append to it or replace in it.
const minimal = `version: 1
name: p
source:
  base_url: https://fs1.example.com
  account: acme
  timezone: UTC
forms: [form1]
load:
  - path: out.csv
`

func TestDefaults(t *testing.T) {
	dir := t.TempDir()
	d, err := Parse(filepath.Join(dir, "p.yaml"), []byte(minimal), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	want := &Definition{
		File: filepath.Join(dir, "p.yaml"), Name: "p", Forms: []string{"form1"}, State: filepath.Join(dir, ".formetl"), Names: schemas.ByLabel,
		Source: Source{
			BaseURL: "https://fs1.example.com", Account: "acme", Key: transport.NewSecret(canary).From("the environment variable FORMETL_API_KEY"), Zone: time.UTC,
			Requests: Requests{Concurrency: 4, Timeout: 30 * time.Second, Retries: 8, MaxRequests: 100_000},
		},
		Extract: Extract{Settle: time.Minute, Lookback: 72 * time.Hour, Changes: ChangesAuto, Verify: true},
		Outputs: []Output{{Path: filepath.Join(dir, "out.csv"), Format: "csv", Profile: "strict", Partition: PartitionNone}},
	}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("got  %+v\nwant %+v", d, want)
	}
}

// accepted are changes to the minimal definition that are right too.
func TestAccepted(t *testing.T) {
	for _, c := range []struct{ name, old, new string }{
		{"BOM and CR LF", "version: 1\n", "\ufeffversion: 1\r\n"},
		{"document marker", "version: 1", "---\nversion: 1"},
		{"loopback v4", "https://fs1.example.com", "http://127.0.0.9:8080/base"},
		{"loopback v6", "https://fs1.example.com", "http://[::1]:8080"},
		{"localhost", "https://fs1.example.com", "http://LocalHost"},
		{"allowed plain HTTP", "  account", "  allow_http: true\n  account"},
		{"sections with everything commented out", "load:", "extract:\n  # from: 2026-01-01\nload:"},
		{"alias", "account: acme", "account: &a acme\n  api_key: ${env:FORMETL_API_KEY}"},
		{"flow", "forms: [form1]", `"forms": ["form1"]`},
		{"Unicode name", "name: p", "name: Zufriedenheit Größe"},
		{"top-level columns", "load:", "columns:\n  - {name: id, from: result_id, type: int64}\nload:"},
		{"words that YAML takes for true", "load:", "columns:\n  - {name: b, from: 'item:1', type: bool, true_values: [true, yes], false_values: [no, false]}\nload:"},
		{"schema without columns", "load:", "schema: {empty: as_null}\nload:"},
		{"two files", "  - path: out.csv", "  - path: out.csv\n  - path: out.parquet\n    compression: snappy"},
		{"format without a known extension", "out.csv", "out.txt\n    format: csv"},
		{"gzip around a name of its own", "out.csv", "dump.gz\n    format: ndjson"},
		{"compression that the name tells", "out.csv", "out.json.zst\n    compression: zstd"},
		{"dataset in a folder beside", "  - path: out.csv", "  - path: lake/\n    format: arrow\n  - path: lake.csv"},
		{"no partition for a file", "out.csv", "out.csv\n    partition: none"},
		{"zero lookback", "load:", "extract: {lookback: 0, from: 2026-01-01T06:00}\nload:"},
		{"changes by the default", "load:", "extract: {changes: auto}\nload:"},
		{"same column, other operators", "load:", "extract:\n  search:\n    where:\n      - {column: 1, begins: a}\n      - {column: 1, ends: a}\nload:"},
		{"globs with {form}", "forms: [form1]\nload:\n  - path: out.csv", "forms: ['a*', '[bc]?']\nload:\n  - path: '{form}/{pipeline}-{account}-{run_id}.csv'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(minimal, c.old, c.new, 1)
			if text == minimal {
				t.Fatal("the change changes nothing")
			}
			if c.name == "allowed plain HTTP" {
				text = strings.Replace(text, "https://", "http://", 1)
			}
			if _, err := Parse(filepath.Join(t.TempDir(), "p.yaml"), []byte(text), testOptions()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAliasesAreFollowed(t *testing.T) {
	text := strings.Replace(minimal, "forms: [form1]", "forms: &f [007]\nexclude: *f\n", 1)
	d, err := Parse("p.yaml", []byte(text), testOptions())
	if err != nil || len(d.Exclude) != 1 || d.Exclude[0] != "007" {
		t.Errorf("got %+v, %v", d, err)
	}
}

func TestExamplesAreValid(t *testing.T) {
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		o := testOptions()
		o.WithoutSecrets = true
		o.Lookup = nil
		d, err := Load(file, o)
		if err != nil {
			t.Error(err)
			continue
		}
		if !d.Source.Key.IsZero() {
			t.Errorf("%s: a key although none was asked for", file)
		}
		if want := strings.TrimSuffix(filepath.Base(file), ".yaml"); d.Name != want {
			t.Errorf("%s: the pipeline is called %s", file, d.Name)
		}
	}
}

func TestSchemaFileOfADefinition(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "s", "good.yaml"), "version: 1\ncolumns:\n  - {name: id, from: result_id, type: int64}\n")
	write(t, filepath.Join(dir, "s", "bad.yaml"), "version: 1\ncolumns:\n  - {name: id, from: result_id, type: int46}\n")
	for file, want := range map[string][]string{
		"s/good.yaml": nil,
		"s/bad.yaml":  {"p.yaml:8:9: schema: the schema file has problems", "s/bad.yaml:3:39: columns[0].type: ", "int64"},
		"s/none.yaml": {"p.yaml:8:9: schema: the schema file", "no such file", "relative to the definition's folder"},
	} {
		text := strings.Replace(minimal, "load:", "schema: "+file+"\nload:", 1)
		d, err := Parse(filepath.Join(dir, "p.yaml"), []byte(text), testOptions())
		if want == nil {
			if err != nil || d.Schema == nil || d.Schema.Name != "good" {
				t.Errorf("%s: %v, %v", file, d, err)
			}
			continue
		}
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v lacks %q", file, err, w)
			}
		}
	}
}

func TestUnreadableDefinition(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{filepath.Join(dir, "none.yaml"), dir} {
		_, err := Load(file, testOptions())
		var wrong *Error
		if !errors.As(err, &wrong) || wrong.Err == nil || !strings.HasPrefix(err.Error(), file+": the file cannot be read: ") {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := Load(filepath.Join(dir, "none.yaml"), testOptions()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v is not ErrNotExist", err)
	}
}

func TestWantsForm(t *testing.T) {
	d := &Definition{Forms: []string{"form1", "survey-*"}, Exclude: []string{"survey-test", "*-old"}}
	var got []string
	for _, form := range []string{"form1", "form10", "survey-a", "survey-test", "survey-old", "other"} {
		if d.WantsForm(form) {
			got = append(got, form)
		}
	}
	if want := []string{"form1", "survey-a"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !d.ListsForms() || (&Definition{Forms: []string{"a"}}).ListsForms() {
		t.Error("ListsForms")
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFinestUnit(t *testing.T) {
	for _, c := range []struct{ a, b, want Partition }{
		{PartitionNone, PartitionNone, PartitionNone},
		{PartitionNone, PartitionYear, PartitionYear},
		{PartitionMonth, PartitionNone, PartitionMonth},
		{PartitionMonth, PartitionYear, PartitionMonth},
		{PartitionYear, PartitionDay, PartitionDay},
	} {
		if got := (&Definition{Outputs: []Output{{Partition: c.a}, {Partition: c.b}}}).FinestUnit(); got != c.want.Unit() {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

// parseSchema is LoadSchema for bytes that were read from file.
func parseSchema(file string, data []byte) (*schemas.Schema, error) {
	doc, root, err := parseDocument(file, data)
	if err != nil {
		return nil, err
	}
	return decodeSchema(doc, root, nil)
}

// TestConnectionStrings: what references lead to is escaped as its place asks for, and secret. The
// command of one is not run by all who read the definition.
func TestConnectionStrings(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://u:${env:PG}@h/d":               "postgres://u:it%27s%20a%5Cb%2F%3F%2B@h/d",
		"host=h password=${env:PG} user=${env:PG}": `host=h password='it\'s a\\b/?+' user='it\'s a\\b/?+'`,
		"${env:PG}": `it's a\b/?+`,
		"postgres://u:${cmd:pass}@h/d?x=${env:PG}": "",
	} {
		o := testOptions()
		o.WithoutSecrets = want == ""
		d, err := Parse("p.yaml", []byte(strings.Replace(minimal, "path: out.csv", "{database: postgres, table: a.t, control_schema: own, adopt: true, audit: true, dsn: \""+dsn+"\"}", 1)), o)
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		db, host := d.Outputs[0].Database, "db.example.com/warehouse"
		if want == "" {
			host = "unknown"
		}
		if db.DSN.Reveal() != want || d.Outputs[0].Path != "postgres://"+host+"/a.t/" || db.Control != "own" || !d.Outputs[0].NoCodebook || !db.Adopt || db.SoftDelete || !db.Audit {
			t.Errorf("%s: %q of %+v", dsn, db.DSN.Reveal(), d.Outputs[0])
		}
		if shown := transport.RedactAll("its "+want+"; "+`it's a\b/?+`, d.Secrets()...); strings.Contains(shown, "it's") {
			t.Errorf("%s: %s is shown", dsn, shown)
		}
	}
}
