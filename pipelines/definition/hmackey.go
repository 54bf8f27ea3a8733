package definition

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines/internal/strictyaml"
	"github.com/formetl/formetl/schemas"
)

// HMACKeyVariable is the environment variable that holds the key of pii: hmac
// where a schema has no reference to it.
const HMACKeyVariable = "FORMETL_HMAC_KEY"

const hmacKeyRemedy = "write hmac_key: ${env:" + HMACKeyVariable + "} or hmac_key: ${file:/run/secrets/hmac-key}"

// readHMACKey reads a schema's hmac_key, which is a reference and never the key. No
// message shows what stands there.
func (r *schemaReader) readHMACKey(v strictyaml.Value) bool {
	v = v.Hidden()
	text, ok := v.Scalar()
	parts := referenceShape.FindStringSubmatch(text)
	switch {
	case !ok || parts == nil:
		v.Fail(hmacKeyRemedy+"; a key that has been in a file should be replaced", "the value is not a reference; a key never stands in a schema")
		return false
	case parts[1] == "env" && !variableShape.MatchString(parts[2]):
		v.Fail(hmacKeyRemedy, "the reference names no environment variable")
		return false
	}
	r.schema.HMACReference = text
	return true
}

// hmacKeys says where the key of pii: hmac is looked for. The zero value looks for
// no key; then only the form of references is checked.
type hmacKeys struct {
	wanted bool
	dir    string                           // that ${file:PATH} is relative to
	lookup func(name string) (string, bool) // reads the environment; nil is an empty one
}

// settleHMACKey reads the key if a column needs it. Problems with the key are
// reported at the reference, else at the first column that needs a key. It returns
// the key's text, so that the caller can redact it.
func (r *schemaReader) settleHMACKey(keys hmacKeys) extract.Secret {
	if !keys.wanted || !r.schema.Needs(schemas.PIIHMAC) {
		return extract.Secret{}
	}
	place, referred := r.own["hmac_key"]
	if referred && r.bad[place.Path()] {
		return extract.Secret{} // the reference has been reported
	}
	remedy := "set it, or change the reference"
	if !referred {
		place, remedy = r.firstHMAC(), "set it, or "+hmacKeyRemedy
	}
	text, where, err := keys.read(r.schema.HMACReference)
	if err == nil {
		if r.schema.HMACKey, err = schemas.NewHMACKey([]byte(text)); err != nil {
			err = fmt.Errorf("%s: %w", where, err)
		}
	}
	switch {
	case err == nil:
	case referred:
		place.Hidden().Fail(remedy, "%v", err)
	default:
		place.Fail(remedy, "the column needs a key, the schema names none, and %v", err)
	}
	return extract.NewSecret(text)
}

// firstHMAC is the pii rule of the first column whose values are hashed.
func (r *schemaReader) firstHMAC() strictyaml.Value {
	for i, c := range r.schema.Columns {
		if c.PII.Kind == schemas.PIIHMAC {
			return r.columns[i]["pii"]
		}
	}
	return strictyaml.Value{} // not reached: the caller has found such a column
}

// read returns the text of a key and where it was found. An empty reference stands
// for the default variable. Blanks and line ends around the text are cut off, as
// they are for API keys. Errors never hold the text.
func (k hmacKeys) read(reference string) (text, where string, err error) {
	kind, target := "env", HMACKeyVariable
	if parts := referenceShape.FindStringSubmatch(reference); parts != nil {
		kind, target = parts[1], parts[2]
	}
	if kind == "env" {
		where = "the environment variable " + target
		set := false
		if k.lookup != nil {
			text, set = k.lookup(target)
		}
		if !set {
			return "", where, fmt.Errorf("%s is not set", where)
		}
	} else {
		if !filepath.IsAbs(target) {
			target = filepath.Join(k.dir, target)
		}
		where = "the key file " + target
		data, err := strictyaml.ReadFile(target, maxKeyFile)
		if err != nil {
			return "", where, fmt.Errorf("%s cannot be read: %w", where, err)
		}
		text = string(data)
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	if text == "" {
		return "", where, fmt.Errorf("%s is empty", where)
	}
	for _, c := range text {
		if c < ' ' || c == 0x7f {
			return text, where, fmt.Errorf("%s holds more than a key: a line end or a control character; `openssl rand -hex 32` makes one", where)
		}
	}
	return text, where, nil
}
