package pipelines

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
