// Package page holds one decoded answer of a Form Results Service: a page of
// results, whatever format the service sent it in.
//
// A Page owns the answer's text. Results have cells, which are their metas and
// items; the values of cells are views into the text. So a page takes a handful
// of allocations, and none if it comes from the pool. A decoder fills a page
// through a Builder, and hands it out only when the whole answer was read.
//
// Dates in a page are wall-clock times of the account's zone, and ReadWall says which instants
// they are.
//
// The package neither reads answers (see extract/v1) nor knows which columns a
// form has (see transform). Begin reading at Page; a decoder begins at Builder.
package page
