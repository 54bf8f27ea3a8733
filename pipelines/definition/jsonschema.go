package definition

import (
	_ "embed" // for the schema of definitions
	"encoding/json"

	"github.com/formetl/formetl/pipelines/internal/strictyaml"
)

//go:embed definition.schema.json
var jsonSchema string

// JSONSchema returns the JSON Schema (draft 2020-12) of definitions, for editors.
// It accepts more than Load does: what depends on the machine, on other keys or on
// the build is not in it.
func JSONSchema() []byte { return []byte(jsonSchema) }

// schemaNode is the part of a JSON Schema that says where a key belongs.
type schemaNode struct {
	Properties map[string]schemaNode `json:"properties"`
	Items      *schemaNode           `json:"items"`
	OneOf      []schemaNode          `json:"oneOf"`
}

// homeOf says where a key belongs that stands at the wrong level, such as
// "under source:". It is "" for a key that no section has.
func homeOf(key string) string {
	var root schemaNode
	if err := json.Unmarshal([]byte(jsonSchema), &root); err != nil {
		return ""
	}
	if _, top := root.Properties[key]; top {
		return "at the top level, without indentation"
	}
	if section := root.find(key, ""); section != "" {
		return "under " + section + ":"
	}
	return ""
}

// find returns the path of a section that has the key. Of several sections it is
// the first in alphabetical order, so that the answer is always the same.
func (n schemaNode) find(key, path string) string {
	best := ""
	better := func(found string) {
		if found != "" && (best == "" || found < best) {
			best = found
		}
	}
	for name, child := range n.Properties {
		if name == key && path != "" {
			better(path)
		}
		better(child.find(key, strictyaml.JoinKeys(path, name)))
	}
	if n.Items != nil {
		better(n.Items.find(key, path+"[]"))
	}
	for _, child := range n.OneOf {
		better(child.find(key, path))
	}
	return best
}
