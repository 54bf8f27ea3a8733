// Package states is the state of a pipeline as programs read it: the JSON of `state show`
// and of what `clean` finds, and what the next run does, in words.
//
// Begin reading at Of.
package states
