package definition

import (
	"encoding/json"
	"slices"

	"github.com/formetl/formetl/pipelines/internal/strictyaml"
)

// schemaNode is the part of a JSON Schema that says where a key belongs.
type schemaNode struct {
	Properties map[string]schemaNode `json:"properties"`
	Items      *schemaNode           `json:"items"`
	OneOf      []schemaNode          `json:"oneOf"`
}

// homeOf says by a JSON Schema where a key belongs that stands at the wrong level, such
// as "under source:". It is "" for a key that no section has.
func homeOf(jsonSchema []byte, key string) string {
	var root schemaNode
	if err := json.Unmarshal(jsonSchema, &root); err != nil {
		return ""
	}
	sections := root.sections(key, "")
	switch {
	case len(sections) == 0:
		return ""
	case slices.Contains(sections, ""):
		return "at the top level, without indentation"
	}
	// Of several sections it is always the same one.
	return "under " + slices.Min(sections) + ":"
}

// sections are the paths of the sections below a path that have the key.
func (n schemaNode) sections(key, path string) (found []string) {
	for name, child := range n.Properties {
		if name == key {
			found = append(found, path)
		}
		found = append(found, child.sections(key, strictyaml.JoinKeys(path, name))...)
	}
	if n.Items != nil {
		found = append(found, n.Items.sections(key, path+"[]")...)
	}
	for _, child := range n.OneOf {
		found = append(found, child.sections(key, path)...)
	}
	return found
}
