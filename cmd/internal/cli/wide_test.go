package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"
)

// wideForm has so many items, all with one label. Each of its results answers
// an equal share of them, a day after the one before.
func wideForm(items, results int) *formservice.Form {
	list := make([]formservice.Item, items)
	for i := range list {
		list[i] = formservice.Item{ID: strconv.Itoa(i + 1), Type: "text", Index: i + 1, Label: "Question"}
	}
	made := make([]formservice.Result, results)
	for i := range made {
		share := list[i*items/results : (i+1)*items/results]
		answers := make([]formservice.Answer, len(share))
		for k, item := range share {
			answers[k] = formservice.Answer{ID: item.ID, Values: []string{"x"}}
		}
		day := strconv.Itoa(11 + i)
		made[i] = formservice.Result{ID: int64(i + 1), Items: answers, Metas: []formservice.Meta{{ID: "date_finish", Value: "2026-01-" + day + " 09:00:00"}}}
	}
	return formservice.NewForm("form1", list, made)
}

// TestMaxColumns: more columns than max_columns end a run with 65, wherever
// they turn up, before anything is written or kept.
func TestMaxColumns(t *testing.T) {
	const schema = "schema: {max_columns: %d, unknown: %s, columns: [{name: id, from: result_id, type: int64}]}\n"
	columns := func(most int, unknown string) string {
		return strings.NewReplacer("%d", strconv.Itoa(most), "%s", unknown).Replace(schema)
	}
	for name, c := range map[string]struct {
		items, results int
		definition     string
		code           int
		told           string
	}{
		"inferred":                {10_050, 1, "", console.ExitData, "max_columns is 10000"},
		"declared, in one result": {40, 1, columns(30, "add"), console.ExitData, "max_columns is 30"},
		"declared, over windows":  {40, 8, columns(30, "add"), console.ExitData, "max_columns is 30"},
		"ignored":                 {40, 8, columns(30, "ignore"), console.ExitOK, ""},
		"just enough":             {40, 8, columns(42, "add"), console.ExitOK, ""}, // with id and date_finish
	} {
		t.Run(name, func(t *testing.T) {
			_, server := newService(testKey, wideForm(c.items, c.results))
			defer server.Close()
			dir := t.TempDir()
			file := pipelineFile(t, dir, "wide", server.URL, "", c.definition+`forms: [form1]
state: state
extract: {from: 2026-01-11, to: 2026-01-21, window: 1d}
load: [{path: out/form1.csv}, {path: lake/, format: ndjson, partition: day}]`)
			code, _, told := inProcess(testKey, "run", file)
			if code != c.code || !strings.Contains(told, c.told) || code != console.ExitOK && (!strings.Contains(told, "form form1") || !strings.Contains(told, "unknown: ignore")) {
				t.Fatalf("ended with %d, not %d:\n%.2000s", code, c.code, told)
			}
			if code == console.ExitOK {
				return
			}
			if left, err := os.ReadDir(filepath.Join(dir, "out")); err == nil && len(left) > 0 {
				t.Errorf("%v are left", left)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "state", "checkpoint", "*", "*")); len(left) > 0 {
				t.Errorf("a checkpoint is kept for the next run: %v", left)
			}
			again, _, told := inProcess(testKey, "run", file)
			if again != console.ExitData || strings.Contains(told, "resuming") {
				t.Errorf("the next run ended with %d:\n%.2000s", again, told)
			}
		})
	}
}
