package cli

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// readAs is what a reader makes of a file without options: how many rows there are, the
// names of the columns, the sum of the ids, and the texts of one column.
type readAs struct {
	Rows    int      `json:"rows"`
	Columns []string `json:"columns"`
	IDs     int64    `json:"ids"`
	Names   []string `json:"names"` // "" for a cell that is empty
}

// exported exports a form whose values try a reader's patience, and returns the folder of
// its files and what they hold.
func exported(t *testing.T, names ...string) (dir string, want readAs) {
	t.Helper()
	service := &formservice.Server{Key: testKey, Forms: []*formservice.Form{
		formservice.Generate(formservice.GenerateOptions{Directory: "form1", Results: 3000, Seed: 9}),
	}}
	server := httptest.NewServer(service)
	defer server.Close()
	dir = t.TempDir()
	for _, name := range append(names, "form1.ndjson") {
		p := command(t, dir, testKey, append(append([]string{"export", "--form", "form1", "-o", name}, serviceArgs(server.URL)...), "--names", "id")...)
		if code := p.code(t, p.Run()); code != console.ExitOK {
			t.Fatalf("%s: %d: %s", name, code, &p.stderr)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "form1.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var row struct {
			ID   int64   `json:"result_id"`
			Name *string `json:"item_1"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if want.Rows == 0 {
			want.Columns = keysInOrder(t, line)
		}
		want.Rows, want.IDs = want.Rows+1, want.IDs+row.ID
		if row.Name == nil {
			row.Name = new(string)
		}
		want.Names = append(want.Names, *row.Name)
	}
	return dir, want
}

// keysInOrder returns the keys of a JSON object as they stand there.
func keysInOrder(t *testing.T, object string) (keys []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(object))
	depth := 0
	for key := true; ; {
		token, err := d.Token()
		if err != nil {
			return keys
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			continue
		case json.Delim('}'), json.Delim(']'):
			depth--
			key = true
			continue
		}
		if depth == 1 {
			if key {
				keys = append(keys, fmt.Sprint(token))
			}
			key = !key
		}
	}
}

func (want readAs) compare(t *testing.T, file string, got readAs) {
	t.Helper()
	if got.Rows != want.Rows || got.IDs != want.IDs || !slices.Equal(got.Columns, want.Columns) {
		t.Errorf("%s: %d rows, ids %d, columns %q, want %d, %d, %q", file, got.Rows, got.IDs, got.Columns, want.Rows, want.IDs, want.Columns)
	}
	for i := range min(len(got.Names), len(want.Names)) {
		if got.Names[i] != want.Names[i] {
			t.Errorf("%s, row %d: %q, want %q", file, i, got.Names[i], want.Names[i])
		}
	}
	if len(got.Names) != len(want.Names) {
		t.Errorf("%s: %d names, want %d", file, len(got.Names), len(want.Names))
	}
}

// pythonWithPandas returns a Python that has pandas. The first one on the path may be
// another than the system's.
func pythonWithPandas(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import pandas, openpyxl").Run() == nil {
			return python
		}
	}
	needs.Missing(t, "pandas", "apt-get install python3-pandas python3-openpyxl")
	return ""
}

// TestPandasOpens reads exports with pandas as people do: by the file's name alone.
func TestPandasOpens(t *testing.T) {
	python := pythonWithPandas(t)
	files := []string{"form1.csv", "form1.csv.gz", "form1.json", "form1.xlsx"}
	dir, want := exported(t, files...)
	const script = `
import json, sys, pandas
for path in sys.argv[1:]:
    read = pandas.read_json if ".json" in path else pandas.read_excel if ".xlsx" in path else pandas.read_csv
    d = read(path)
    names = ["" if pandas.isna(v) else str(v) for v in d["item_1"]]
    print(json.dumps({"rows": len(d), "columns": list(d.columns), "ids": int(d["result_id"].sum()), "names": names}))
`
	cmd := exec.CommandContext(t.Context(), python, append([]string{"-c", script}, files...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	data, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	for n, file := range files {
		var got readAs
		if err := json.Unmarshal([]byte(lines[n]), &got); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i, name := range want.Names { // pandas takes some of these for missing, unless keep_default_na=False is given
			missing := slices.Contains([]string{"NaN", "NULL", "null", "N/A", "None"}, name)
			if missing && i < len(got.Names) && got.Names[i] == "" {
				got.Names[i] = name
			}
		}
		want.compare(t, file, got)
	}
}
