package v1

// What the tests outside the package look at.

const MaxAnswer = maxBytes

// Bound is the size in bytes up to which an answer is read.
func (c *Client) Bound() int64 { return c.most }

// SetBound sets it.
func (c *Client) SetBound(n int64) { c.most = n }
