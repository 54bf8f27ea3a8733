package page

import (
	"slices"
	"strings"
)

// Metas that have a meaning for reading results.
const (
	MetaStatus = "result_status"
	MetaStart  = "date_start"
	MetaFinish = "date_finish" // when the result was finished; services filter by this date
	MetaUpdate = "date_update" // when the result last changed
)

// metas are the metas that services have, in the order in which API v1 sends them.
var metas = []string{
	MetaStatus, "login_username", "login_email", MetaStart, MetaFinish, MetaUpdate,
	"user_ip", "user_browser", "user_os", "user_device", "user_referrer",
	"payment_status", "payment_amount", "score",
}

// MetaPlace returns the position of a meta in the list of the known metas (service-notes.md,
// "Meta ids"), which orders columns. Unknown metas come last.
func MetaPlace(id string) int {
	if i := slices.Index(metas, id); i >= 0 {
		return i
	}
	return len(metas)
}

// KnownMeta tells whether services have a meta of that id.
func KnownMeta(id string) bool { return slices.Contains(metas, id) }

// IsDate tells whether a meta, known or unknown, is a date with a time: its id begins with date_.
func IsDate(id string) bool { return strings.HasPrefix(id, "date_") }
