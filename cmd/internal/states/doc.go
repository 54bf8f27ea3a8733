// Package states shows the state of a pipeline: the text of `state show` and its JSON.
//
// Begin reading at Write and Of.
package states
