package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // as in cmd/formetl

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/duckdb"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// all is how many results the form feedback has.
const all = 240

// runs tells how each example is run, and which rows it must give.
func runs() map[string]func(*testing.T, *world) {
	return map[string]func(*testing.T, *world){
		"all-forms.yaml":   runAllForms,
		"database.yaml":    runDatabase,
		"hourly-s3.yaml":   runHourly,
		"one-off.yaml":     runOneOff,
		"spreadsheet.yaml": runSpreadsheet,
		"warehouse.yaml":   runWarehouse,
	}
}

// TestExamples has each definition validated as it stands, and run against the service.
func TestExamples(t *testing.T) {
	needs.Slow(t)
	files, err := filepath.Glob(filepath.Join(examples, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	if tested := slices.Sorted(maps.Keys(runs())); !slices.Equal(names, tested) {
		t.Fatalf("the examples are %v, of which %v are run", names, tested)
	}
	t.Setenv("FORMETL_API_KEY", testKey) // what ${env:...} in a definition reads
	for i, file := range files {
		t.Run(names[i], func(t *testing.T) {
			if _, stderr, code := formetl("validate", "--strict", file); code != 0 {
				t.Fatalf("%d: %s", code, stderr)
			}
			runs()[names[i]](t, newExamples(t))
		})
	}
}

// same compares the rows of each form.
func same(t *testing.T, got, want map[string]int64) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("got the rows %v, want %v", got, want)
	}
}

func runAllForms(t *testing.T, w *world) {
	same(t, w.rows(w.example("all-forms.yaml")), map[string]int64{"feedback": all, "orders": 3})
}

// runDatabase runs into a table for each form.
func runDatabase(t *testing.T, w *world) {
	server, _ := needs.OpenPostgres() // Database tells what failed
	t.Cleanup(server.Stop)
	database := server.Database(t)
	t.Setenv("PGPASSWORD", needs.PostgresPassword)
	address := fmt.Sprintf("postgres://loader@127.0.0.1:%d/%s?sslmode=require", server.Port, database)
	definition := w.example("database.yaml", "postgres://formetl@db.example.com/warehouse?sslmode=verify-full", address)
	same(t, w.rows(definition), map[string]int64{"feedback": all, "orders": 3})
	got, err := server.Query(database, "SELECT (SELECT count(*) FROM forms.feedback), (SELECT count(*) FROM forms.orders)")
	if err != nil || got != "240|3\n" {
		t.Errorf("the tables hold %q, %v", got, err)
	}
}

func runOneOff(t *testing.T, w *world) {
	want := int64(0)
	end := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC).Format("2006-01-02 15:04:05")
	for r := range w.form.Each {
		finished, done := r.Meta("date_finish")
		if _, named := r.Values("1"); done && named && finished < end {
			want++
		}
	}
	same(t, w.rows(w.example("one-off.yaml")), map[string]int64{"feedback": want})
}

func runSpreadsheet(t *testing.T, w *world) {
	same(t, w.rows(w.example("spreadsheet.yaml")), map[string]int64{"feedback": all})
	text := read(t, filepath.Join(w.dir, "out", "feedback.csv"))
	if !strings.HasPrefix(text, "\ufeffresult_id,") || !strings.Contains(text, ",full_name,") || !strings.Contains(text, ",'=Ada,") {
		t.Errorf("this is not made for a spreadsheet: %.200s", text)
	}
}

// runWarehouse also reads what was written, by the view that formetl prints.
func runWarehouse(t *testing.T, w *world) {
	definition := w.example("warehouse.yaml", "per_minute: 50 ", "per_minute: 0 ")
	same(t, w.rows(definition), map[string]int64{"feedback": all})
	same(t, w.rows(definition), map[string]int64{"feedback": all})
	sql := w.formetl("schema", "ddl", definition, "--dialect", "duckdb")
	t.Run("DuckDB", func(t *testing.T) {
		db := duckdb.Open(t, "UTC")
		if _, err := db.ExecContext(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		var rows int64
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM feedback WHERE price > 0 AND len(colours) = 2").Scan(&rows); err != nil || rows != all {
			t.Errorf("%d rows, %v", rows, err)
		}
	})
}

// runHourly runs from two hosts that share the bucket alone, with a new result between.
func runHourly(t *testing.T, w *world) {
	needs.RequireS3(t)
	server, err := needs.StartS3(t.Context(), needs.Versitygw(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	makeBucket(t, server.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", needs.S3AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", needs.S3SecretKey)
	for _, name := range []string{"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "")
	}
	definition := w.example("hourly-s3.yaml", "per_minute: 50", "per_minute: 0", "# s3: {", "s3: {", "http://127.0.0.1:9000", server.URL,
		"state: s3://bucket/formetl/", fmt.Sprintf("state: {path: s3://bucket/formetl/, s3: {endpoint: %q, region: us-east-1, path_style: true}}", server.URL))
	same(t, w.rows(definition), map[string]int64{"feedback": all})
	chicago, err := time.LoadLocation("America/Chicago")
	if err != nil {
		t.Fatal(err)
	}
	newest, at := results(all + 1)[all], time.Now().In(chicago).Add(-time.Hour).Format(formservice.WallTime)
	newest.Metas = []formservice.Meta{{ID: "result_status", Value: "Complete"}, {ID: "date_start", Value: at}, {ID: "date_finish", Value: at}, {ID: "date_update", Value: at}}
	if _, err := w.form.Insert(newest); err != nil {
		t.Fatal(err)
	}
	same(t, w.rows(definition), map[string]int64{"feedback": all + 1})
}

func makeBucket(t *testing.T, url string) {
	t.Helper()
	client := s3.New(s3.Options{
		BaseEndpoint: &url, UsePathStyle: true, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(needs.S3AccessKey, needs.S3SecretKey, ""),
	})
	if _, err := client.CreateBucket(context.WithoutCancel(t.Context()), &s3.CreateBucketInput{Bucket: aws.String("bucket")}); err != nil {
		t.Fatal(err)
	}
}
