// Package metas names what results carry besides their answers, as all generations of the
// service do (service-notes.md, "Meta ids"). Whoever reads results or describes columns
// asks it which of them are dates.
package metas

import (
	"slices"
	"strings"
)

// Metas that have a meaning for the reading of results.
const (
	Status = "result_status"
	Start  = "date_start"
	Finish = "date_finish" // services filter by it
	Update = "date_update" // when the result last changed
)

// known are the metas that services have, in the order in which API v1 sends them.
var known = []string{
	Status, "login_username", "login_email", Start, Finish, Update,
	"user_ip", "user_browser", "user_os", "user_device", "user_referrer",
	"payment_status", "payment_amount", "score",
}

// Place returns the place of a meta among those that services have. Metas that are not known
// come last.
func Place(id string) int {
	if i := slices.Index(known, id); i >= 0 {
		return i
	}
	return len(known)
}

// Known tells whether services have a meta of that id.
func Known(id string) bool { return slices.Contains(known, id) }

// IsDate tells whether a meta is a date with a time, also one that is not known.
func IsDate(id string) bool { return strings.HasPrefix(id, "date_") }
