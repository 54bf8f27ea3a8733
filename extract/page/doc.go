// Package page holds one decoded answer of a Form Results Service: a page of
// results, whatever format the service sent it in.
//
// A Page owns the answer's text. Results, their metas and items (cells) and the
// values of these are views into that text, so a page of a hundred results is
// a handful of allocations, and none where it comes from the pool. A page is
// complete when anybody sees it: a decoder fills it through a Builder and hands
// it out only when the whole answer was read.
//
// The package neither reads answers (see extract/v1) nor knows which columns a
// form has (see transform). Begin reading at Page; a decoder begins at Builder.
package page
