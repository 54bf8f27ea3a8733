package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
)

// Fingerprint is equal for definitions that read the same rows of a form. It
// holds the whole definition and its schema, except for the keys that change no
// row. A key that is added to definitions counts unless it is left out here.
func (d *Definition) Fingerprint() (string, error) {
	reads := *d
	reads.File, reads.Outputs, reads.Forms, reads.Exclude, reads.State, reads.StateS3 = "", nil, nil, nil, "", nil
	reads.Source.Requests, reads.Source.Key, reads.Source.API = Requests{}, transport.Secret{}, ""
	e := &reads.Extract
	e.From, e.To, e.Window, e.Incremental, e.Lookback, e.Verify = time.Time{}, time.Time{}, extract.Step{}, false, 0, false
	e.Changes = ""
	data, err := json.Marshal(struct {
		Definition
		Zone string // which JSON knows by its name alone
	}{reads, d.Source.Zone.String()})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
