package cli

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/clitest"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
)

// keysOf are the keys of a struct as JSON, those of structs and lists in it
// with the way to them. Those of embedded structs are the struct's own.
func keysOf(t reflect.Type, way string) []string {
	var keys []string
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		if field.Anonymous {
			keys = append(keys, keysOf(field.Type, way)...)
			continue
		}
		in, to := field.Type, way+name
		if in.Kind() == reflect.Slice && in.Elem().Kind() != reflect.String {
			in, to = in.Elem(), to+"[]"
		}
		if in.Kind() == reflect.Pointer {
			in = in.Elem()
		}
		if in.Kind() == reflect.Struct && !in.Implements(reflect.TypeFor[json.Marshaler]()) {
			keys = append(keys, keysOf(in, to+".")...)
			continue
		}
		keys = append(keys, to)
	}
	return keys
}

// TestReportKeysAreDocumented holds the report to the README: what reads
// reports is written against it, so keys come, and none goes or is renamed.
func TestReportKeysAreDocumented(t *testing.T) {
	clitest.SameNames(t, "key", clitest.ReadmeTable(t, "The run report"), keysOf(reflect.TypeFor[pipelines.Report](), ""))
}

// TestReportLeavesOut holds that the README marks with ° what is left out of a
// report in which nothing happened, and nothing else.
func TestReportLeavesOut(t *testing.T) {
	quiet := &pipelines.Report{Forms: []*pipelines.FormReport{{Outputs: []output.Report{{}}}}}
	full := &pipelines.Report{
		Definition: "d.yaml", Error: "e", Hint: "h", RequestOutcomes: map[string]int64{"ok": 1},
		Forms: []*pipelines.FormReport{{
			ResultsKept: new(int64), Error: "e",
			ReadReport:  pipelines.ReadReport{Continued: "r", Kept: 1, Rejects: []reading.FaultCount{{}}, Nulled: []reading.FaultCount{{}}},
			CheckReport: pipelines.CheckReport{Verified: &load.Verified{Reason: "r", Method: "m", Unproven: "u"}, ResultChanges: &pipelines.ChangesReport{Reason: "r"}},
			NoticeReport: pipelines.NoticeReport{Drift: []string{"d"}, Changes: []schemas.Change{{
				Kind: "k", From: "f", Column: "c", Key: "k", Was: "w", Is: "i", Label: "l", Count: 1, Breaking: true,
			}}},
			Outputs: []output.Report{{SHA256: "s", Watermark: load.Wall(time.Now()), Explode: "item:1", CompanionsError: "c", DeadLetters: "l", Error: "e"}},
		}},
	}
	there := jsonKeys(t, quiet)
	var optional []string
	for key := range jsonKeys(t, full) {
		if !there[key] {
			optional = append(optional, key)
		}
	}
	clitest.SameNames(t, "optional key", clitest.ReadmeTable(t, "The run report", "°"), optional)
	if all := jsonKeys(t, full); len(all) != len(keysOf(reflect.TypeFor[pipelines.Report](), "")) {
		t.Errorf("the full report of this test has %d keys", len(all))
	}
}

// jsonKeys are the ways to all leaves of a value as JSON.
func jsonKeys(t *testing.T, v any) map[string]bool {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	var walk func(way string, v any)
	walk = func(way string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if way == "request_outcomes" {
				break
			}
			for k, sub := range v {
				walk(strings.TrimPrefix(way+"."+k, "."), sub)
			}
			return
		case []any:
			if len(v) > 0 && reflect.TypeOf(v[0]).Kind() == reflect.Map {
				walk(way+"[]", v[0])
				return
			}
		}
		keys[way] = true
	}
	walk("", tree)
	return keys
}
