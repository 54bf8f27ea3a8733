// Package wizard makes a first definition. It asks what a definition has to know, or takes
// the answers from flags, and tries them at the service.
//
// One table of questions drives the flags and what is asked on a terminal. An answer is
// checked by putting it into a definition and reading that as a run does. So package
// definition has all rules, and an answer that is accepted is accepted by a run.
//
// Files are written at the end, all of them or none. The API key is read through its
// reference, to ask the service, and is written nowhere.
//
// Begin reading at Begin, then the table in questions.go.
package wizard
