// Package account gives what every command needs before it does its work with a
// definition: the options, a client of its account (NewClient), the forms that it
// is about, and the checkpoints that runs left of them.
//
// Forms are named in the definition or stand behind globs. Forms and ListForms ask
// the service for those (Get Forms).
//
// A command that does its work form by form gathers the errors in a FormsError.
//
// The package reads no results and writes no output. It removes nothing but
// checkpoints (DiscardCheckpoints).
//
// Begin reading with Options, then Forms.
package account
