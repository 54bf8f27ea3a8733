package definition

import (
	"fmt"
	"slices"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/internal/strictyaml"
	"github.com/formetl/formetl/schemas"
)

// HMACKeyVariable is the environment variable that holds the key of pii: hmac
// where a schema has no reference to it.
const HMACKeyVariable = "FORMETL_HMAC_KEY"

const hmacKeyRemedy = "write hmac_key: ${env:" + HMACKeyVariable + "} or hmac_key: ${file:/run/secrets/hmac-key}"

// readHMACKey reads a schema's hmac_key, which is a reference and never the key.
func (r *schemaReader) readHMACKey(v strictyaml.Value) {
	if _, ok := readReference(v, hmacKeyRemedy, "a key never stands in a schema"); ok {
		r.schema.HMACReference, _ = v.Scalar()
	}
}

// readKey reads the key if a column needs it. Where secrets is nil, no key
// is looked for. A file is relative to dir. Problems with the
// key are reported at the reference, else at the first column that needs a key.
func (r *schemaReader) readKey(dir string, secrets *Secrets) {
	first := slices.IndexFunc(r.schema.Columns, func(c schemas.Column) bool { return c.PII.Kind == schemas.PIIHMAC })
	if secrets == nil || first < 0 || r.own.Refused("hmac_key") {
		return
	}
	ref, place := reference{"env", HMACKeyVariable}, r.columns[first].keys["pii"]
	otherwise, problem := hmacKeyRemedy, "the column needs a key, the schema names none, and %v"
	if parts := referenceShape.FindStringSubmatch(r.schema.HMACReference); parts != nil {
		ref, place = reference{parts[1], parts[2]}, r.own.keys["hmac_key"].Hidden()
		otherwise, problem = "change the reference", "%v"
	}
	text, where, err := ref.read(dir, *secrets)
	r.own.Redact(transport.NewSecret(text).Redact)
	if err == nil && text != "" {
		if r.schema.HMACKey, err = schemas.NewHMACKey([]byte(text)); err != nil {
			err = fmt.Errorf("%s: %w", where, err)
		}
	} else if err != nil && text != "" {
		err = fmt.Errorf("%w; `openssl rand -hex 32` makes one", err)
	}
	if err != nil {
		place.Fail(ref.remedy(err, otherwise), problem, err)
	}
}
