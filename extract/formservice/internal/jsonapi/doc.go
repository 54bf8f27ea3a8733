// Package jsonapi is the JSON generation of the service (API v2) for package
// formservice: paths, tokens, parameters and answers.
//
// It knows no results of its own. Package formservice describes a form by
// [Form], and reads what a [Selection] asks for.
//
// Where the facts (service-v2.md) are silent or of confidence B and C, the service
// does the following:
//
//   - Checks run in this order: the path (404), the token (401), the account
//     (404, or 403 for one of Server.Accounts), the form (404), the method
//     (405), the parameters (422). A token in the URL is refused with 401.
//   - A raw "+" in a query is a space. Otherwise queries are read by the letter,
//     as those of v1.
//   - A page beyond the last is empty; Pagination-Page-Last is 0 where there is
//     no result. Incomplete results come without a view too.
//   - Dates become UTC by Server.Zone: an hour that occurs twice is its first
//     pass, a time that is skipped moves forward by the gap. They filter as in
//     v1, by the millisecond; a fraction is part of the value.
//   - sort_id takes id, result_id, a meta or an item of a result; values compare
//     as bytes as they are shown. Metas are searched as they are shown.
//   - An empty date is absent. An item is absent where v1 has no value element.
//     An answer that is none of the choices is "other", behind the last choice.
//     An item of a choice type without choices takes labels as they come.
//   - The members of a matrix share the least of their positions. Its composite
//     items are labelled by its groups.
//   - A busy answer has HTTP 429. [Variants] has the other shapes.
//   - The spelling of texts and the order of members vary with the result id.
package jsonapi
