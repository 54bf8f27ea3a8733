// Package budget keeps the request budgets that all processes with one state
// folder share.
//
// A definition may limit the requests to its account per minute and per day.
// [Shared] returns the budget that an extract.Client asks before each request.
// Its bookings lie in a ledger: a small JSON file in the state folder for each
// server and account. Processes take turns with a lock (flock) on a second
// file, and replace the ledger in one step. [Read] returns what is booked and
// needs no lock.
//
// The package does not decide when a request is sent: transport.RollingBudget
// does. If a ledger is lost or damaged, runs may spend one budget too much.
// Begin reading at [Shared].
package budget
