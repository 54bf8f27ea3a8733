package definition

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/formetl/formetl/schemas/nearest"
)

// A reference within a value: ${env:NAME}, ${file:PATH}, ${var:NAME} and ${cmd:LINE}. A
// variable may be a part of another one, as in ${env:KEY_${var:stage}}. $${ stands for ${.
const (
	referenceBegin  = "${"
	referenceEscape = "$${"
)

// These match the escape and a reference: of a variable, or of any kind. The closing brace
// may lack of the latter.
var (
	variableInText  = regexp.MustCompile(`\$\$\{|\$\{var:([^}]*)\}`)
	referenceInText = regexp.MustCompile(`\$\$\{|\$\{([a-z]+):([^}]*)(\}?)`)
)

var referenceKinds = []string{"cmd", "env", "file", "var"}

// variables are what ${var:NAME} stands for.
type variables struct {
	values map[string]string // by name
	known  map[string]bool   // names that vars has, or that a value refers to
}

// expandReferences replaces the references in all values of a definition, and returns
// the names of variables that the definition has or refers to. In keys of secrets it
// replaces variables alone: what reads the secret follows its reference.
func (r *reader) expandReferences(root value) []string {
	vars := &variables{values: map[string]string{}, known: map[string]bool{}}
	entries, _ := root.Entries() // what is no group is refused when it is read
	for _, e := range entries {
		if e.Key() == "vars" {
			r.readVariables(e, vars)
		}
	}
	maps.Copy(vars.values, r.o.Variables)
	for _, e := range entries {
		if e.Key() != "vars" {
			expandTexts(e, func(v value, text string) string { return r.expanded(v, text, vars) })
		}
	}
	return slices.Sorted(maps.Keys(vars.known))
}

// readVariables reads the section vars: names with their defaults. A name without a
// default must be given.
func (r *reader) readVariables(v value, vars *variables) {
	expandTexts(v, func(v value, text string) string { return r.expanded(v, text, nil) })
	entries, _ := v.Entries()
	for _, e := range entries {
		name := e.Key()
		if !variableShape.MatchString(name) {
			e.Fail("write a name of letters, digits and _", "%s is not the name of a variable", Quote(name))
			continue
		}
		if vars.known[name] {
			e.Fail("keep one of them", "the variable %s stands here a second time", Quote(name))
		}
		vars.known[name] = true
		if _, given := r.o.Variables[name]; given || e.IsEmpty() {
			continue
		}
		if text, ok := e.Word(); ok {
			vars.values[name] = text
		}
	}
}

// expanded replaces the references in a text. Without vars, ${var:…} is refused.
func (r *reader) expanded(v value, text string, vars *variables) string {
	if !strings.Contains(text, referenceBegin) {
		return text
	}
	e := &expansion{reader: r, vars: vars, secret: isSecretKey(v.Key())}
	e.at = v
	if e.secret {
		e.at = v.Hidden()
	}
	out := variableInText.ReplaceAllStringFunc(text, e.variable)
	out = referenceInText.ReplaceAllStringFunc(out, e.one)
	if !e.secret {
		r.expansions = append(r.expansions, expandedValue{v, out})
	}
	return out
}

// expandedValue is a value with the text that its references gave.
type expandedValue struct {
	value
	text string
}

// keepKeyAway refuses values that hold the API key by a reference: they stand in file
// names, logs and manifests.
func (r *reader) keepKeyAway() {
	for _, e := range r.expansions {
		if r.def.Source.Key.Redact(e.text) != e.text {
			e.Hidden().Fail("name another variable or file", "the value would hold the API key, which stands in api_key alone")
		}
	}
}

// isSecretKey tells whether a key's value is a reference to a secret.
func isSecretKey(key string) bool { return key == "api_key" || key == "hmac_key" || key == "dsn" }

// expansion replaces the references of one value.
type expansion struct {
	*reader
	vars   *variables
	at     value
	secret bool
}

// one returns what a match of referenceInText stands for.
func (e *expansion) one(match string) string {
	if match == referenceEscape {
		return referenceBegin
	}
	parts := referenceInText.FindStringSubmatch(match)
	kind, target := parts[1], parts[2]
	if parts[3] == "" {
		e.at.Fail("write } behind it, or $${ for a text that is no reference", "the reference ${%s:… has no end", kind)
		return ""
	}
	switch {
	case kind == "var":
		e.at.Fail("write the value here", "a variable cannot refer to a variable")
	case e.secret: // it is followed where the secret is read
		return match
	case !slices.Contains(referenceKinds, kind):
		e.at.Fail(suggest(kind, referenceKinds, "write ${env:…}, ${file:…} or ${var:…}")+"; write $${ for a text that is no reference",
			"${%s:…} is not a kind of reference", kind)
	case kind == "cmd":
		e.at.Fail("use it for api_key and hmac_key, and ${env:…}, ${file:…} or ${var:…} here", "a command is run for secrets alone")
	default:
		ref := reference{kind, target}
		text, _, err := ref.read(e.dir, e.o.Secrets)
		if err == nil {
			return text
		}
		e.at.Fail(ref.remedy(err, "give a default by vars"), "%v", err)
	}
	return ""
}

// variable returns the value that a match of variableInText stands for. It leaves the
// escape to one.
func (e *expansion) variable(match string) string {
	if match == referenceEscape {
		return match
	}
	name := variableInText.FindStringSubmatch(match)[1]
	if e.vars == nil {
		e.at.Fail("write the value here", "a variable cannot refer to a variable")
		return ""
	}
	if value, given := e.vars.values[name]; given {
		e.vars.known[name] = true
		return value
	}
	remedy := fmt.Sprintf("give --var %s=VALUE, or a default by vars", name)
	if near := nearest.Ask(name, slices.Sorted(maps.Keys(e.vars.values))); near != "" && !e.vars.known[name] {
		remedy = near + " Else " + remedy
	}
	e.at.Fail(remedy, "the variable %s has no value", Quote(name))
	return ""
}
