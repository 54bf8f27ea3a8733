// Package model knows what outputs of formetl may hold: the history of every
// result of a form (Form), what a definition makes of a state (Definition),
// what lies at an output (Look), and whether the one agrees with the other
// (Judge). It starts no process and asks no service, so that other drivers can
// judge by it too.
//
// The promise that Judge holds formetl to: after a run every row that the run
// read is a state that its result had between the run's oldest reading and its
// end; whoever was in the range all that time is there; nobody is there twice;
// rows of parts that the run did not read are as they were.
package model
