package tabletest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// largeVariable asks for a million results in place of a few.
const largeVariable = "FORMETL_TEST_LARGE"

// mostTime is how much longer a run into a table may take than psql's \copy of the same rows
// as CSV into the same table and a run that writes them as CSV together.
const mostTime = 1.5

// TestTime compares a run into a table with what a person would do without it. It runs the
// programs as they are released. The least of three rounds counts, because a machine that does
// something else meanwhile takes longer, and never less.
func TestTime(t *testing.T) {
	results := 1_000_000
	if os.Getenv(largeVariable) == "" {
		needs.Long(t)
		results = 20_000
	}
	database := server.Database(t)
	dir := t.TempDir()
	for _, name := range []string{"formetl", "formserver"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "arrow_json_stdlib", "-ldflags", "-s -w", "-o", filepath.Join(dir, name), "../../"+name)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cannot build %s: %v\n%s", name, err, out)
		}
	}
	url := serve(t, filepath.Join(dir, "formserver"), results)
	rows := filepath.Join(dir, "rows.csv")
	run := func(name, output string) time.Duration {
		file := filepath.Join(dir, name+".yaml")
		definition := fmt.Sprintf("version: 1\nname: %s\nsource: {base_url: %q, account: acme, timezone: America/Chicago}\nforms: [form1]\nload: [%s]\n", name, url, output)
		if err := os.WriteFile(file, []byte(definition), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "formetl"), "run", file, "--full", "--state", t.TempDir())
		cmd.Env = append(os.Environ(), "FORMETL_API_KEY="+testKey, "PG="+server.DSN(database, "sslmode=disable"))
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return time.Since(began)
	}
	psql := func(script string) time.Duration {
		began := time.Now()
		if err := server.Run(database, script); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	var csv, table, copied time.Duration
	for range 3 {
		psql("DROP TABLE IF EXISTS forms.form1; DROP TABLE IF EXISTS forms._formetl_objects, forms._formetl_ids, forms._formetl_runs, forms._formetl_staged, forms._formetl_leases; CHECKPOINT")
		csv = least(csv, run("csv", "{path: "+filepath.Join(dir, "out")+"/, format: csv}"))
		table = least(table, run("table", `{database: postgres, dsn: "${env:PG}", table: forms.form1}`))
		psql(`\copy forms.form1 TO '` + rows + `' (FORMAT csv, HEADER)` + "\nDROP TABLE IF EXISTS forms.copied; CREATE TABLE forms.copied (LIKE forms.form1 INCLUDING ALL); CHECKPOINT")
		copied = least(copied, psql(`\copy forms.copied FROM '`+rows+`' (FORMAT csv, HEADER)`))
		counts, err := server.Query(database, "SELECT (SELECT count(*) FROM forms.form1), (SELECT count(*) FROM forms.copied)")
		if want := fmt.Sprintf("%d|%[1]d\n", results); err != nil || counts != want {
			t.Fatalf("the tables hold %q, %v, want %q", counts, err, want)
		}
	}
	t.Logf("%d results: a run into a table takes %v, one into CSV %v, psql's \\copy %v", results, table, csv, copied)
	if most := time.Duration(mostTime * float64(csv+copied)); results >= 1_000_000 && table > most {
		t.Errorf("a run into a table takes %v, more than %v", table, most)
	}
}

// least is the lesser of two times. 0 is none.
func least(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// serve starts the test service in a process of its own, and returns its address.
func serve(t *testing.T, program string, results int) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "--addr", "127.0.0.1:0", "--results", fmt.Sprint(results), "--form", "form1")
	cmd.Env = append(os.Environ(), "FORMSERVER_API_KEY="+testKey)
	out, err := cmd.StdoutPipe()
	if err == nil {
		cmd.Stderr = cmd.Stdout
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, url, found := strings.Cut(lines.Text(), "listening on "); found {
			return strings.TrimSpace(url)
		}
	}
	t.Fatal("the service did not start")
	return ""
}
