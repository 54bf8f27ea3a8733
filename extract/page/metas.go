package page

import (
	"slices"
	"strings"
)

// Metas that have a meaning for the reading of results.
const (
	MetaStatus = "result_status"
	MetaStart  = "date_start"
	MetaFinish = "date_finish" // services filter by it
	MetaUpdate = "date_update" // when the result last changed
)

// metas are the metas that services have, in the order in which API v1 sends them.
var metas = []string{
	MetaStatus, "login_username", "login_email", MetaStart, MetaFinish, MetaUpdate,
	"user_ip", "user_browser", "user_os", "user_device", "user_referrer",
	"payment_status", "payment_amount", "score",
}

// MetaPlace returns the place of a meta among those that all generations of the service have
// (service-notes.md, "Meta ids"). Metas that are not known come last.
func MetaPlace(id string) int {
	if i := slices.Index(metas, id); i >= 0 {
		return i
	}
	return len(metas)
}

// KnownMeta tells whether services have a meta of that id.
func KnownMeta(id string) bool { return slices.Contains(metas, id) }

// IsDate tells whether a meta is a date with a time, also one that is not known.
func IsDate(id string) bool { return strings.HasPrefix(id, "date_") }
