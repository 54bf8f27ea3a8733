// Package budget keeps the request budgets that all processes with one state
// folder share.
//
// A definition may limit the requests to its account per minute and per day.
// [Shared] gives the budget that an extract.Client asks before each request. Its
// bookings lie in a ledger: one small JSON file for each server and account in
// the state folder. Processes take turns on it by a lock (flock) on a second
// file, and the ledger is replaced in one step. [Read] tells what is booked
// without taking the lock.
//
// The package does not decide when a request is sent: that is
// transport.RollingBudget. A ledger that is lost or damaged costs one budget and
// nothing else. Begin reading at [Shared].
package budget
