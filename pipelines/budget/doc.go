// Package budget keeps the request budgets that all processes with one state share.
//
// A definition may limit the requests to its account per minute and per day. [Shared] returns
// the budget that a client asks before each request. Its bookings lie in a ledger: a small
// object of the state for each server and account. Processes replace it by put-if-version.
// [Read] returns what is booked.
//
// If a ledger is lost or damaged, runs may spend one budget too much. Begin reading with
// [Budget].
package budget
