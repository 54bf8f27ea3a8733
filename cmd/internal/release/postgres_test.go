package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // as in cmd/formetl

	"github.com/formetl/formetl/load/loadtest/needs"
)

// shared is the PostgreSQL of all tests of the package.
var shared *needs.Postgres

func TestMain(m *testing.M) {
	var run func() int
	shared, run = needs.PostgresMain(m)
	os.Exit(run())
}

// database makes a database of its own for a test and gives its name.
func database(t *testing.T) string {
	t.Helper()
	return shared.Database(t)
}

// psql runs a script as the README tells, and gives what it printed.
func psql(t *testing.T, database, script string) string {
	t.Helper()
	out, err := tryPsql(t, database, script)
	if err != nil {
		t.Fatalf("%v\n%s", err, numbered(script))
	}
	return out
}

func tryPsql(t *testing.T, database, script string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.sql")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(shared.Bin, "psql"), "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-h", shared.Dir, "-p", fmt.Sprint(shared.Port), "-U", "postgres", "-d", database, "-f", file)
	cmd.Env = append(os.Environ(), "PGTZ=Asia/Kolkata", "PGCLIENTENCODING=UTF8")
	var out, failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failure
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("psql: %w\n%s", err, failure.String())
	}
	return out.String(), nil
}

func numbered(script string) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(script) {
		n++
		if n > 80 {
			b.WriteString("…\n")
			break
		}
		fmt.Fprintf(&b, "%4d %s", n, line)
	}
	return b.String()
}
