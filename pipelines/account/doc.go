// Package account gives what every command needs before it does its work with a
// definition: the options, a client of its account (NewClient), the budget of its requests,
// the forms that it is about, and the checkpoints that runs left of them.
//
// Forms are named in the definition or stand behind globs. Forms and ListForms ask
// the service for those (Get Forms).
//
// A definition may limit the requests to its account per minute and per day. A client asks a
// Budget before each request. Its bookings lie in a ledger: a small object of the state for
// each server and account, which processes replace by put-if-version. If it is lost or
// damaged, runs may spend one budget too much. BudgetUse returns what is booked.
//
// A command that does its work form by form gathers the errors in a FormsError.
//
// The package reads no results and writes no output. It removes nothing but
// checkpoints (DiscardCheckpoints).
//
// Begin reading with Options, NewClient and Forms; for the budget with Budget.Reserve.
package account
