package cli

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/pipelines"
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
	sameNames(t, "key", readmeTable(t, "The run report"), keysOf(reflect.TypeFor[pipelines.Report](), ""))
}

// moduleRoot is the module's folder, seen from this package.
const moduleRoot = "../../.."

// readmeTable returns the names in the first column of the table that follows
// a heading of the README.
func readmeTable(t testing.TB, heading string) []string {
	t.Helper()
	text := docs(t)
	at := regexp.MustCompile(`\n##+ ` + regexp.QuoteMeta(heading) + `\n`).FindStringIndex(text)
	if at == nil {
		t.Fatalf("the documentation has no %q", heading)
	}
	table, _, _ := strings.Cut(text[at[1]:], "\n#")
	var names []string
	for line := range strings.Lines(table) {
		if first, _, ok := strings.Cut(strings.TrimPrefix(line, "|"), "|"); ok && strings.HasPrefix(line, "|") {
			for _, name := range regexp.MustCompile("`[^`]+`").FindAllString(first, -1) {
				names = append(names, strings.Trim(name, "`"))
			}
		}
	}
	return names
}

// docs returns the README and all topics of the documentation, one behind the other.
func docs(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"README.md", "*/*.md"} {
		files, err := filepath.Glob(filepath.Join(moduleRoot, pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.WriteString("\n" + string(data))
		}
	}
	return all.String()
}

// sameNames tells what one of two lists has and the other lacks.
func sameNames(t testing.TB, what string, documented, actual []string) {
	t.Helper()
	for _, name := range actual {
		if !slices.Contains(documented, name) {
			t.Errorf("%s %s is not in the README's table", what, name)
		}
	}
	seen := map[string]bool{}
	for _, name := range documented {
		if !slices.Contains(actual, name) || seen[name] {
			t.Errorf("the README's table has the %s %s, which is not there, or twice", what, name)
		}
		seen[name] = true
	}
}

// TestREADMEHasTheKeysOfSchemaFiles compares its tables with the JSON Schema,
// which another test holds equal to what is read.
func TestREADMEHasTheKeysOfSchemaFiles(t *testing.T) {
	type object struct{ Properties map[string]json.RawMessage }
	var schema struct {
		Properties struct {
			Schema struct{ OneOf []object }
		}
		Defs struct {
			Columns struct{ Items object }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(pipelines.DefinitionSchema, &schema); err != nil {
		t.Fatal(err)
	}
	keys := []string{"version"} // of the file alone
	for _, form := range schema.Properties.Schema.OneOf {
		keys = slices.AppendSeq(keys, maps.Keys(form.Properties))
	}
	columns := slices.Collect(maps.Keys(schema.Defs.Columns.Items.Properties))
	if len(keys) < 7 || len(columns) < 14 {
		t.Fatalf("keys %v, of a column %v", keys, columns)
	}
	sameNames(t, "key", readmeTable(t, "Keys of a schema file"), keys)
	sameNames(t, "key of a column", readmeTable(t, "Keys of a column"), columns)
}
