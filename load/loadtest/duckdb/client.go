//go:build cgo

package duckdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// serveVariable tells a test's program to be the other process of a Client.
const serveVariable = "FORMETL_TEST_DUCKDB_CLIENT"

// Client does statements on databases in files, in a process of its own: DuckDB's lock keeps
// processes apart. Each statement opens the file and closes it. While the file is locked the
// client tries again, as the documentation tells readers to do.
type Client struct {
	mu      sync.Mutex
	to      *json.Encoder
	from    *json.Decoder
	refused int
}

// readOnly opens a file to read it.
const readOnly = "?access_mode=read_only"

// request is a statement. answer is what it gave.
type (
	request struct{ File, SQL string }
	answer  struct {
		Lines   []string
		Err     string
		Refused int // how often the file was locked
	}
)

// NewClient starts a client, which ends with the test. The test's program calls Serve first.
func NewClient(t testing.TB) *Client {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]) //nolint:gosec // this program itself
	cmd.Env, cmd.Stderr = append(os.Environ(), serveVariable+"=1"), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &Client{to: json.NewEncoder(in), from: json.NewDecoder(out)}
}

// Query does a statement and returns a line for each row, with a | between two values.
func (c *Client) Query(file, sql string) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var a answer
	if err := errors.Join(c.to.Encode(request{file, sql}), c.from.Decode(&a)); err != nil {
		return nil, err
	}
	c.refused += a.Refused
	if a.Err != "" {
		return nil, errors.New(a.Err)
	}
	return a.Lines, nil
}

// Refused tells how often a file was locked by another process.
func (c *Client) Refused() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// Serve does not return in the process of a Client. TestMain calls it first.
func Serve() {
	if os.Getenv(serveVariable) == "" {
		return
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var held *sql.DB
	for {
		var r request
		err := in.Decode(&r)
		if errors.Is(err, io.EOF) {
			os.Exit(0)
		}
		var a answer
		switch {
		case err != nil:
		case r.SQL == holdStatement:
			if held, err = sql.Open("duckdb", r.File+readOnly); err == nil {
				err = held.PingContext(context.Background())
			}
		case r.SQL == letStatement:
			err = held.Close()
		default:
			a.Lines, err = r.do(&a.Refused)
		}
		if err != nil {
			a.Err = err.Error()
		}
		if out.Encode(a) != nil {
			os.Exit(1)
		}
	}
}

// do does the statement, and counts how often the file was locked.
func (r request) do(refused *int) ([]string, error) {
	for {
		lines, err := r.once()
		if err == nil || !strings.Contains(err.Error(), "Could not set lock on file") {
			return lines, err
		}
		*refused++
		time.Sleep(time.Millisecond)
	}
}

func (r request) once() (lines []string, err error) {
	dsn := r.File
	if strings.HasPrefix(r.SQL, "SELECT") {
		dsn += readOnly
	}
	db, err := sql.Open("duckdb", dsn)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(context.Background(), r.SQL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, pointers := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		pointers[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(pointers...); err != nil {
			return nil, err
		}
		line := make([]string, len(values))
		for i, v := range values {
			line[i] = printed(v)
		}
		lines = append(lines, strings.Join(line, "|"))
	}
	return lines, rows.Err()
}

// printed returns a value as psql prints it.
func printed(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		return map[bool]string{true: "t", false: "f"}[v]
	case time.Time:
		return v.UTC().Format(time.DateTime)
	case Decimal:
		return v.String()
	}
	return fmt.Sprint(v)
}

// Hold opens a file to read it, and keeps it open until let is called.
func (c *Client) Hold(file string) (let func() error, err error) {
	if _, err := c.Query(file, holdStatement); err != nil {
		return nil, err
	}
	return func() error {
		_, err := c.Query(file, letStatement)
		return err
	}, nil
}

// Statements for Hold, which are none of DuckDB.
const (
	holdStatement = "HOLD"
	letStatement  = "LET"
)
