package transport

import "strings"

// Parameter is one name and value of a request's query. A bare one has no value.
type Parameter struct {
	Name, Value string
	Bare        bool
}

// Parameters are those of one request, in the order of sending.
type Parameters []Parameter

// Add appends a parameter, unless its value is empty.
func (ps *Parameters) Add(name, value string) {
	if value != "" {
		*ps = append(*ps, Parameter{Name: name, Value: value})
	}
}

// Query returns the query of an address. Names and values are percent-encoded throughout,
// a space as %20 (specification, section 4; service-v2.md, sections 1 and 4).
func (ps Parameters) Query() string { return ps.join("&", Escape) }

// String returns the parameters as people read them.
func (ps Parameters) String() string { return ps.join(", ", strings.Clone) }

func (ps Parameters) join(separator string, spell func(string) string) string {
	var b strings.Builder
	for i, p := range ps {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(spell(p.Name))
		if !p.Bare {
			b.WriteString("=" + spell(p.Value))
		}
	}
	return b.String()
}
