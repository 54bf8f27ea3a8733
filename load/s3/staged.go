package s3

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
)

// The prefixes of the two kinds of Prepared.Staged, each with a version.
const (
	uploadPrefix = "s3-upload-1:"
	emptyPrefix  = "s3-empty-1:"
)

// staged is the content of Prepared.Staged. It describes an upload with all its
// parts, or an empty object, of which the store holds nothing yet.
type staged struct {
	ID     string       `json:"id"`               // the id in the object's metadata
	Run    string       `json:"run,omitempty"`    // run whose folder holds the upload's marker
	Upload string       `json:"upload,omitempty"` // the store's id, "" for an empty object
	Parts  []stagedPart `json:"parts,omitempty"`  // in order, from number 1
}

// stagedPart is what CompleteMultipartUpload needs of a part. Its JSON is a
// list, which is short: an upload may have 10,000 parts.
type stagedPart struct {
	ETag  string
	CRC32 string // base64, "" if none was sent
}

// MarshalJSON writes ["etag"] or ["etag","crc32"].
func (p stagedPart) MarshalJSON() ([]byte, error) {
	if p.CRC32 == "" {
		return json.Marshal([]string{p.ETag})
	}
	return json.Marshal([]string{p.ETag, p.CRC32})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *stagedPart) UnmarshalJSON(data []byte) error {
	var list []string
	if err := json.Unmarshal(data, &list); err != nil || len(list) == 0 || len(list) > 2 {
		return errNotStaged
	}
	p.ETag = list[0]
	if len(list) == 2 {
		p.CRC32 = list[1]
	}
	return nil
}

func (s staged) encode() string {
	if s.Upload == "" {
		return emptyPrefix + s.ID
	}
	data, _ := json.Marshal(s) // encoding strings cannot fail
	return uploadPrefix + base64.RawURLEncoding.EncodeToString(data)
}

var errNotStaged = errors.New("it is not a staged object of an S3 destination")

// decodeStaged reads what encode wrote. It refuses anything else, because
// records may have been damaged or written by anyone.
func decodeStaged(text string) (staged, error) {
	if id, ok := strings.CutPrefix(text, emptyPrefix); ok && isID(id) {
		return staged{ID: id}, nil
	}
	encoded, ok := strings.CutPrefix(text, uploadPrefix)
	data, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	var s staged
	if !ok || err != nil || json.Unmarshal(data, &s) != nil || !s.valid() {
		return staged{}, errNotStaged
	}
	return s, nil
}

// valid tells whether encode can have written this upload.
func (s staged) valid() bool {
	return isID(s.ID) && s.Upload != "" && load.CheckRun(s.Run) == nil && len(s.Parts) > 0 && len(s.Parts) <= MaxParts &&
		!slices.ContainsFunc(s.Parts, func(p stagedPart) bool { return p.ETag == "" })
}

// isID tells whether text is an id that rand.Text may have made: base32 letters
// and digits.
func isID(text string) bool {
	return text != "" && len(text) <= 64 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}
