package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// jsonSchema is the JSON Schema of definitions.
func jsonSchema() []byte {
	data, err := os.ReadFile("../definition.schema.json")
	if err != nil {
		panic(err)
	}
	return data
}

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(jsonSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("definition.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("definition.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON reads YAML as an editor does.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	var plain func(n *yaml.Node)
	plain = func(n *yaml.Node) { // a date is a text
		if n.Tag == "!!timestamp" {
			n.Tag = "!!str"
		}
		for _, child := range n.Content {
			plain(child)
		}
	}
	plain(&document)
	var decoded any
	if err := document.Decode(&decoded); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return instance
}

func TestJSONSchemaAcceptsWhatIsRight(t *testing.T) {
	s := compiledSchema(t)
	texts := map[string]string{"minimal": minimal, "full": fullDefinition}
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(data)
	}
	for name, text := range texts {
		if err := s.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What depends on other keys, on the machine or on the build is beyond a JSON
// Schema; every other bad definition must be refused by both.
func TestJSONSchemaRefusesWhatIsWrong(t *testing.T) {
	s := compiledSchema(t)
	beyond := []string{
		"key twice", "merge key", "tag", "two documents", "tab", "no space after a colon", "no space in a group", "quote not closed", "bracket not closed", "bad glob", "bad glob excluded", // YAML, globs
		"unset variable in a path", "form leaves its path", "form with a slash", "form with a backslash", "form with a backslash inside", "glob that climbs", "state elsewhere", "form twice, once with a schema", "schema of a form at home", "state of no bucket", "settings of a state folder", "state at home", "the interface's path",
		"plain HTTP", "plain HTTP to almost loopback", "unknown zone", "zone in another case", "zone as an offset", "the machine's zone",
		"30 February", "names of a table", "to before from", "empty range", "settle too long", "no timeout", "no patience", "criteria twice", "hexadecimal budget",
		"nothing to write", "no such type", "names repeat", "sources repeat",
		"no extension", "unknown extension", "format and extension differ", "format and inner extension differ", "parquet in gzip",
		"dataset without a format", "dataset of json", "dataset of xlsx", "xlsx in zstd", "partition of a file", "unknown compression", "arrow in snappy",
		"compression against the name", "no compression against the name", "csv settings of parquet", "home folder", "a folder as a file",
		"file scheme", "unknown scheme", "no bucket", "bucket alone", "remote path that climbs", "s3 settings of a local path", "tag of AWS",
		"part size too small", "part size too large", "part size beyond all numbers", // as text with a unit
		"one path twice", "one path twice, and so the children's", "one path twice by a form's name", "file in a dataset", "dataset around a file",
		"a password in a dsn", "a password in keywords", "unset variable in a dsn", "no connection string", "broken connection string",
		"name with a NUL", "an empty dsn", "a dotted control schema", "a column of the audit", "a column of deleted rows", "a tab in a table", "a list's table that the database refuses", "a list's table that files take",
		"a placeholder in a schema", "an empty table", "a table without the id", "an id as text",
		"a glob, one path of two", "second child's path is taken", "s3 endpoint with a query", "s3 endpoint with a fragment",
		"several forms, one path", "a glob, one path", "incremental file", "partition over a column dt",
		"child's path is taken", "a list's table is taken", "child of no name for a path", "files over an output", "files from an address", "child of a placeholder",
	}
	refused := 0
	for _, c := range slices.Concat(badTop(), badSource(), badExtract(), badSchema(), badLoad()) {
		if slices.Contains(beyond, c.name) {
			continue
		}
		text := strings.Replace(minimal, c.old, c.new, 1)
		if c.name == "source is text" {
			text = strings.Replace(minimal, "source:", "source: here\nx:", 1)
		}
		if err := s.Validate(asJSON(t, text)); err == nil {
			t.Errorf("%s: the JSON Schema accepts it", c.name)
		}
		refused++
	}
	if refused < 60 {
		t.Errorf("only %d cases", refused)
	}
}

// The JSON Schema and the decoder know the same keys in the same sections. The
// decoder names the keys of a section when it meets one that it does not know.
func TestJSONSchemaHasTheDecodersKeys(t *testing.T) {
	const stranger = "zzzzzzzz"
	got := map[string][]string{}
	for _, text := range []string{
		fullDefinition, strings.Replace(minimal, "load:", "columns: [{}]\nload:", 1),
		strings.Replace(minimal, "path: out.csv", "database: postgres", 1),
	} {
		var definition map[string]any
		if err := yaml.Unmarshal([]byte(text), &definition); err != nil {
			t.Fatal(err)
		}
		addKey(definition, stranger)
		data, err := json.Marshal(definition)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Parse("p.yaml", data, testOptions())
		var wrong *Error
		if !errors.As(err, &wrong) {
			t.Fatal(err)
		}
		for _, p := range wrong.Problems {
			if keys, ok := strings.CutPrefix(p.Remedy, "the settings here are "); ok {
				section := strings.TrimSuffix(strings.TrimSuffix(p.Key, stranger), ".")
				section = indexes.ReplaceAllString(section, "[]") // an output has other keys where it is a table
				got[section] = slices.Compact(slices.Sorted(slices.Values(append(got[section], strings.Split(keys, ", ")...))))
			}
		}
	}
	want := map[string][]string{}
	var schema map[string]any
	if err := json.Unmarshal(jsonSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	schemaKeys(t, schema, schema, "", want)
	for _, section := range slices.Sorted(maps.Keys(want)) {
		if !slices.Equal(got[section], want[section]) {
			t.Errorf("%q: the decoder knows %v, the JSON Schema %v", section, got[section], want[section])
		}
	}
	for section := range got {
		if _, ok := want[section]; !ok {
			t.Errorf("%q: not in the JSON Schema", section)
		}
	}
}

var indexes = regexp.MustCompile(`\[\d+\]`)

// addKey adds a key to every group of keys.
func addKey(node any, key string) {
	switch x := node.(type) {
	case map[string]any:
		for _, child := range x {
			addKey(child, key)
		}
		x[key] = ""
	case []any:
		for _, child := range x {
			addKey(child, key)
		}
	}
}

// schemaKeys collects the keys of each section of a JSON Schema and checks
// that each is closed and described.
func schemaKeys(t *testing.T, root, node map[string]any, path string, sections map[string][]string) {
	t.Helper()
	if ref, ok := node["$ref"].(string); ok {
		defs := root["$defs"].(map[string]any)
		schemaKeys(t, root, defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), path, sections)
	}
	if properties, ok := node["properties"].(map[string]any); ok {
		if node["additionalProperties"] != false {
			t.Errorf("%q: additionalProperties is not false", path)
		}
		sections[path] = slices.Sorted(maps.Keys(properties))
		for key, child := range properties {
			c := child.(map[string]any)
			if c["description"] == nil && key != "columns" {
				t.Errorf("%s: no description", joinKeys(path, key))
			}
			schemaKeys(t, root, c, joinKeys(path, key), sections)
		}
	}
	if items, ok := node["items"].(map[string]any); ok {
		schemaKeys(t, root, items, path+"[]", sections)
	}
	if several, ok := node["oneOf"].([]any); ok {
		for _, child := range several {
			schemaKeys(t, root, child.(map[string]any), path, sections)
		}
	}
}
