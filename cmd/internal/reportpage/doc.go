// Package reportpage makes a page of the reports of runs: one file of HTML that people open,
// print and send on.
//
// The page loads nothing and runs nothing. Its style and its charts are part of it, and its
// content security policy refuses the rest. It is written by plain functions: a template
// package calls methods by their names, so that the linker keeps all methods of all
// libraries, which is 10 MB. The markup is XML too, so that a strict parser can judge it.
//
// Everything that is not a constant of this package goes through markup.text or an
// attribute of markup.open, which escape it. Values of columns with a rule for personal data
// are not in what the page is made from. Lists are cut where they would make the page large.
//
// Begin reading at Page.
package reportpage
