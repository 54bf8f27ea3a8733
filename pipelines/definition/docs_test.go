package definition

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// definitionKeys are the keys of definitions by their path, such as load.s3.tags, and
// whether other keys lie below them.
func definitionKeys(t *testing.T) map[string]bool {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal(jsonSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	sections := map[string][]string{}
	schemaKeys(t, schema, schema, "", sections)
	keys := map[string]bool{}
	for section, names := range sections {
		section = strings.ReplaceAll(section, "[]", "")
		for _, name := range names {
			path := strings.TrimPrefix(section+"."+name, ".")
			keys[path] = keys[path] || false // a section that was met before stays one
		}
		keys[section] = true
	}
	return keys
}

// tableKeys are what the first cells of a text's tables name. Names behind a comma share
// the path of the first.
func tableKeys(text string) []string {
	var keys []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z0-9_.]+`(?:, `[a-z0-9_.]+`)*) \\|").FindAllStringSubmatch(text, -1) {
		var folder string
		for i, name := range strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ") {
			if i == 0 {
				folder = name[:strings.LastIndex(name, ".")+1]
			} else {
				name = folder + name
			}
			keys = append(keys, name)
		}
	}
	return keys
}

// TestEveryKeyIsDocumented: the tables of the documentation have every key that a
// definition may have, and no other. Keys of schema files have a test of the command line.
func TestEveryKeyIsDocumented(t *testing.T) {
	keys := definitionKeys(t)
	documented := map[string]bool{}
	page, err := os.ReadFile(filepath.Join("..", "definitions.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range tableKeys(string(page)) {
		documented[key] = true
	}
	if len(documented) < 50 {
		t.Errorf("only %d keys are documented", len(documented))
	}
	for _, key := range slices.Sorted(maps.Keys(documented)) {
		if _, known := keys[key]; !known {
			t.Errorf("the documentation has the key %s, a definition has not", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !keys[key] && !documented[key] && !strings.HasPrefix(key, "schema.") && !strings.HasPrefix(key, "columns.") && !strings.HasPrefix(key, "state.s3.") && !strings.HasPrefix(key, "files.s3.") {
			t.Errorf("no table of the documentation has the key %s", key)
		}
	}
}

// TestShownKeysAreKnown: each YAML block of the documentation has keys of a definition or
// of a schema file alone, and whole definitions are right.
func TestShownKeysAreKnown(t *testing.T) {
	keys := definitionKeys(t)
	pages, err := filepath.Glob(filepath.Join("..", "..", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, file := range append(pages, filepath.Join("..", "..", "README.md")) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
			var value any
			if err := yaml.Unmarshal([]byte(m[1]), &value); err != nil {
				t.Errorf("%s: %v in %s", file, err, m[1])
				continue
			}
			top, ok := value.(map[string]any)
			if !ok {
				continue // a comment, or rules of another program
			}
			blocks++
			for _, path := range pathsOf("", top) {
				_, known := keys[path]
				_, ofSchema := keys["schema."+path]
				named := strings.HasPrefix(path, "load.s3.tags.") || strings.HasPrefix(path, "vars.")
				if !known && !ofSchema && !named {
					t.Errorf("%s shows the key %s", file, path)
				}
			}
			if top["source"] != nil && top["load"] != nil {
				if _, err := Parse("p.yaml", []byte(m[1]), testOptions()); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
	if blocks < 10 {
		t.Errorf("only %d blocks were found", blocks)
	}
}

// pathsOf are the paths of the keys below a value.
func pathsOf(path string, value any) (paths []string) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			if path != "" {
				name = path + "." + name
			}
			paths = append(append(paths, name), pathsOf(name, below)...)
		}
	case []any:
		for _, below := range v {
			paths = append(paths, pathsOf(path, below)...)
		}
	}
	return paths
}
