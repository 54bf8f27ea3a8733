package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/formetl/formetl/pipelines"
)

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
