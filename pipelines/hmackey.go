package pipelines

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/schemas"
)

// HMACKeyVariable is the environment variable that holds the key of pii: hmac
// where a schema has no reference to it.
const HMACKeyVariable = "FORMETL_HMAC_KEY"

const hmacKeyRemedy = "write hmac_key: ${env:" + HMACKeyVariable + "} or hmac_key: ${file:/run/secrets/hmac-key}"

// readHMACKey reads a schema's hmac_key: a reference, never the key. No
// message holds what stands there.
func (r *schemaReader) readHMACKey(v value) bool {
	v.secret = true
	text, ok := v.scalar()
	parts := referenceShape.FindStringSubmatch(text)
	switch {
	case !ok || parts == nil:
		v.fail(hmacKeyRemedy+"; a key that has been in a file should be replaced", "the value is not a reference; a key never stands in a schema")
		return false
	case parts[1] == "env" && !variableShape.MatchString(parts[2]):
		v.fail(hmacKeyRemedy, "the reference names no environment variable")
		return false
	}
	r.schema.HMACReference = text
	return true
}

// hmacKeys says where the keys of pii: hmac are looked for. The zero value
// looks for none: only the form of references is checked.
type hmacKeys struct {
	wanted bool
	dir    string                           // that ${file:PATH} is relative to
	lookup func(name string) (string, bool) // reads the environment; nil is an empty one
}

// settleHMACKey gets the key where a column needs it. What is wrong with it is
// reported at the reference, or at the first column that needs a key. The text
// is given for redacting.
func (r *schemaReader) settleHMACKey(keys hmacKeys) transport.Secret {
	if !keys.wanted || !r.schema.Needs(schemas.PIIHMAC) {
		return transport.Secret{}
	}
	place, referred := r.own["hmac_key"]
	if referred && r.bad[place.path] {
		return transport.Secret{} // reported
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
		place.secret = true
		place.fail(remedy, "%v", err)
	default:
		place.fail(remedy, "the column needs a key, the schema names none, and %v", err)
	}
	return transport.NewSecret(text)
}

// firstHMAC is the rule of the first column whose values are hashed.
func (r *schemaReader) firstHMAC() value {
	for i, c := range r.schema.Columns {
		if c.PII.Kind == schemas.PIIHMAC {
			return r.columns[i]["pii"]
		}
	}
	return value{} // nobody asks where there is none
}

// read gets the text that a reference leads to, "" the default one. Blanks and
// line ends around it are cut off, as those of API keys are. Its errors never
// hold the text.
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
		data, err := readBounded(target, maxKeyFile)
		if err != nil {
			return "", where, fmt.Errorf("%s cannot be read: %w", where, systemReason(err))
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
