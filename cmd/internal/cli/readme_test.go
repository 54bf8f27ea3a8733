package cli

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/clitest"
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
	clitest.SameNames(t, "key", clitest.ReadmeTable(t, "The run report"), keysOf(reflect.TypeFor[pipelines.Report](), ""))
}
