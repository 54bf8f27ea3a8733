// Package pipelines runs pipeline definitions, their forms side by side.
//
// A definition is planned into windows; windows are read into a checkpoint; what was read is
// reconciled with the service's counts; every output is staged from the same snapshot; a run
// commits its outputs once. Each verb is a package, and formRun.run calls them in this order:
// output opens the destinations, reading decides the range, reconcile asks what changed
// since earlier runs, reading plans and reads, reconcile makes what was read agree, and
// output commits. README.md has a picture of that, and takes one result through it.
//
// The package also tells what a run would do (MakePlan), shows results without keeping them
// (Look, Head), and finds what to read again of rejected results (FindRejects). For these and
// for package upkeep it has what every command needs before its work with a definition: Options,
// a client of the account (NewClient), the forms (Forms, ListForms), and the budget of requests,
// whose bookings lie in a ledger of the state (budget.go, ledger.go).
//
// It knows no concrete format or destination: the command line hands them over
// (output.BuiltIn). It writes no file itself.
//
// Begin reading with Run, then runForm and formRun.run; for the budget with sharedBudget.Reserve.
package pipelines

import "embed"

// Docs are the topics of the documentation on definitions and their runs, as Markdown.
//
//go:embed *.md examples/questions.md
var Docs embed.FS

// DefinitionSchema is the JSON Schema (draft 2020-12) of definitions, for editors. It
// accepts more than [definition.Load] does: what depends on the machine, on other keys or
// on the build is not in it.
//
//go:embed definition.schema.json
var DefinitionSchema []byte
