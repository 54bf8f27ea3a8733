package definition

import (
	"fmt"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/internal/strictyaml"
	"github.com/formetl/formetl/schemas"
)

// HMACKeyVariable is the environment variable that holds the key of pii: hmac
// where a schema has no reference to it.
const HMACKeyVariable = "FORMETL_HMAC_KEY"

const hmacKeyRemedy = "write hmac_key: ${env:" + HMACKeyVariable + "} or hmac_key: ${file:/run/secrets/hmac-key}"

// readHMACKey reads a schema's hmac_key, which is a reference and never the key.
func (r *schemaReader) readHMACKey(v strictyaml.Value) bool {
	_, ok := readReference(v, hmacKeyRemedy, "a key never stands in a schema")
	if ok {
		r.schema.HMACReference, _ = v.Scalar()
	}
	return ok
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
func (r *schemaReader) settleHMACKey(keys hmacKeys) transport.Secret {
	if !keys.wanted || !r.schema.Needs(schemas.PIIHMAC) {
		return transport.Secret{}
	}
	place, referred := r.own["hmac_key"]
	if referred && r.bad[place.Path()] {
		return transport.Secret{} // the reference has been reported
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
	return transport.NewSecret(text)
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

// read returns the text of a key and where it was found, as reference.read does. An
// empty reference stands for the default variable.
func (k hmacKeys) read(text string) (key, where string, err error) {
	ref := reference{"env", HMACKeyVariable}
	if parts := referenceShape.FindStringSubmatch(text); parts != nil {
		ref = reference{parts[1], parts[2]}
	}
	key, where, err = ref.read(k.dir, k.lookup)
	if err != nil && key != "" {
		err = fmt.Errorf("%w; `openssl rand -hex 32` makes one", err)
	}
	return key, where, err
}
