package v1

// What the tests outside the package look at.

const MaxAnswer = defaultBytes

var (
	FuzzSeeds  = fuzzSeeds
	MustDecode = mustDecode
	Plain      = plain
)

// Bound is the size in bytes up to which an answer is read.
func (c *Client) Bound() int64 { return c.bounds.Bytes }

// SetBound sets it.
func (c *Client) SetBound(n int64) { c.bounds.Bytes = n }
