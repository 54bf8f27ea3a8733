// Package states shows the state of a pipeline: the text of `state show`, its JSON, and
// that of what `clean` finds.
//
// Begin reading at Write and Of.
package states
