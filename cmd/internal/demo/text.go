package demo

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// Definition is the definition that the demo runs and leaves.
func Definition(address string) string {
	return fmt.Sprintf(`# Written by formetl demo. The service that it names ran for the demo alone.
version: 1
name: demo
source:
  base_url: http://%s
  account: acme
  api_key: ${file:%s}
  timezone: UTC
forms: [feedback]
names: label                # columns are named as the form's questions
load:
  - path: "{form}.csv"      # one file, replaced whole
    format: csv
  - path: lake/{form}/      # a dataset: a part for each month
    format: parquet
    partition: month
`, address, keyName)
}

// Summary tells a newcomer what was run and written, and what to try next. Only
// commands are proposed that work as they stand there.
func Summary(r *pipelines.Report, took time.Duration, f Settings, text string) []byte {
	form := r.Forms[0]
	csv, lake := form.Outputs[0], form.Outputs[1]
	folder := Folder(f.Dir)
	program, file := Callable(), definition.ShellWord(folder.File())
	var b bytes.Buffer
	fmt.Fprintf(&b, `
Done in %s: %s results read once, %s; %d requests.

  %s  (%s, one row a result)
  %s  (Parquet, %d parts by month, %s)
  %s  (the definition, which says it all:)

`, took.Round(time.Millisecond), show.Thousands(form.Rows), telemetry.Verified(form), r.Requests.All(),
		folder.path("feedback.csv"), show.Size(csv.Bytes), folder.path("lake/feedback")+string(filepath.Separator), lake.Parts, show.Size(lake.Bytes), folder.File())
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, "    %s", line)
	}
	fmt.Fprint(&b, "\nTry next:\n")
	if _, err := exec.LookPath("head"); err == nil {
		fmt.Fprintf(&b, "  head -n 3 %s\n", definition.ShellWord(folder.path("feedback.csv")))
	}
	if _, err := exec.LookPath("duckdb"); err == nil && !strings.ContainsAny(f.Dir, "'\"") {
		parts := filepath.ToSlash(folder.path("lake/feedback")) + "/**/*.parquet"
		fmt.Fprintf(&b, "  duckdb -c \"SELECT dt, count(*) FROM read_parquet('%s', hive_partitioning=true, union_by_name=true) GROUP BY dt ORDER BY dt\"\n", parts)
	}
	fmt.Fprintf(&b, `  %[1]s verify %[2]s   # what was written is whole
  %[1]s schema show %[2]s
  %[1]s export --help   # one form of your own account as a file
`, program, file)
	return b.Bytes()
}

// Callable is how a person calls this program again from the folder that it was
// called in.
func Callable() string {
	const name = "formetl"
	self, err := os.Executable()
	if err != nil {
		return name
	}
	is := func(path string) bool {
		a, failed := os.Stat(self)
		b, err := os.Stat(path)
		return failed == nil && err == nil && os.SameFile(a, b)
	}
	if found, err := exec.LookPath(name); err == nil && is(found) {
		return name
	}
	if strings.Contains(self, "go-build") { // go run keeps it there
		if _, err := os.Stat(filepath.Join("cmd", name, "main.go")); err == nil {
			return "go run ./cmd/" + name
		}
		return "go run github.com/formetl/formetl/cmd/" + name
	}
	if here := "." + string(filepath.Separator) + filepath.Base(self); is(here) {
		return definition.ShellWord(here)
	}
	return definition.ShellWord(self)
}
