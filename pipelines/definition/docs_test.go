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

// yamlBlocks are the texts of a page's YAML blocks.
func yamlBlocks(t *testing.T, file string) []string {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	blocks := make([]string, len(found))
	for i, m := range found {
		blocks[i] = m[1]
	}
	return blocks
}

// TestEveryKeyIsDocumented: the commented blocks of definitions.md are together a right
// definition, and have every key. Keys of schema files have a test of the command line.
func TestEveryKeyIsDocumented(t *testing.T) {
	keys, blocks := definitionKeys(t), yamlBlocks(t, filepath.Join("..", "definitions.md"))
	t.Chdir(t.TempDir())
	if err := os.WriteFile("grants.sql", []byte("SELECT 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse("p.yaml", []byte(strings.Join(blocks[1:5], "")), testOptions()); err != nil {
		t.Error(err)
	}
	documented := map[string]bool{}
	for _, block := range blocks {
		var top map[string]any
		if err := yaml.Unmarshal([]byte(block), &top); err != nil {
			t.Fatal(err)
		}
		for _, path := range pathsOf("", top) {
			documented[path] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !keys[key] && !documented[key] && !strings.HasPrefix(key, "schema.") && !strings.HasPrefix(key, "columns.") && !strings.HasPrefix(key, "state.s3.") && !strings.HasPrefix(key, "files.s3.") {
			t.Errorf("definitions.md lacks the key %s", key)
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
	here := t.TempDir()
	if err := os.WriteFile(filepath.Join(here, "key"), []byte("a-key-to-try"), 0o600); err != nil { // the README's
		t.Fatal(err)
	}
	blocks := 0
	for _, file := range append(pages, filepath.Join("..", "..", "README.md")) {
		for _, block := range yamlBlocks(t, file) {
			var value any
			if err := yaml.Unmarshal([]byte(block), &value); err != nil {
				t.Errorf("%s: %v in %s", file, err, block)
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
				if _, err := Parse(filepath.Join(here, "p.yaml"), []byte(block), testOptions()); err != nil {
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
