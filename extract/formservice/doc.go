// Package formservice is a test service: an http.Handler that implements the
// whole Form Results Service Interface Specification (service-spec.md) over
// forms that are generated or given by a test, with faults on demand.
//
// A Server has an account with Forms, answers requests for them, and logs each Request. A
// Form's results are made from a seed (Generate) or given (NewForm), and may be inserted,
// edited, finished and deleted while requests are answered. A request is parsed into a call,
// which one of two generations answers, XML or JSON, from the same results. Faults say what
// goes wrong, on which requests and how often: a list of names and values, the same in tests
// and in formserver's --faults.
//
// It is an independent reading of the specification. It shares no type and no
// constant with package extract, or a mistake would agree with itself, and it
// is stricter than a real service has to be: what the specification forbids is
// refused, so that a wrong client is caught here. It stores nothing on disk and
// measures nothing. Begin reading at Server.ServeHTTP, for the faults at
// their table.
//
// Where the specification is silent, this service does the following.
//
//   - Checks run in this order: the path (1), the account (101), the key (100),
//     the form (102), the method (1 with HTTP 405), the parameters (2). Errors
//     come with HTTP 404, 404, 401, 404, 405, 400; the fault errors-200 gives the
//     old interface's 200.
//   - A parameter that the transaction does not have is error 2, as are a name
//     that occurs twice, an empty name, a raw "+", a byte that a query must not
//     hold unencoded and a value that is not UTF-8. A result id that is not a number
//     is error 103.
//   - A date without a time is 00:00:00 as fs_min_date and 23:59:59 as
//     fs_max_date (with the fault bare-max-midnight: 00:00:00).
//   - Dates filter by the meta date_finish, for a result without one by
//     date_start; a result without either matches no date bound.
//   - Searches are case-sensitive. An answer of several values matches if one
//     of its values does; an item that was not answered counts as one empty
//     value. An unknown column, view or set of labels is error 2.
//   - fs_sort takes result_id, a meta or an item; values compare as bytes, a
//     list by its first value, a missing one like an empty one, ties by id in
//     the same direction.
//   - Every insert, edit, move and finish sets the meta date_update to the time
//     of the form's clock ([Form.Clock]), where it has one. A deletion leaves
//     no trace.
//   - Copy Form copies the form without its results, under a directory made
//     from the new name. Its parameters stand in the URL; a body is ignored.
//   - fs_secure, fs_include_headings, fs_search_empty_ and
//     fs_search_not_empty_ count by presence: their value is ignored.
//
// API v2, the JSON generation, is served from the same results by
// [Server.API]. Where the facts (service-v2.md) are silent or of confidence B
// and C, the service does the following.
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
//     An item without choices holds text.
//   - The members of a matrix share the least of their positions. Its composite
//     items are labelled by its groups.
//   - A busy answer has HTTP 429. The faults that begin with v2- are the other shapes.
//   - The order of members varies with the result id.
//
// Uploaded files are served with Server.Files: what links of either generation lead to. Where
// the facts are silent, the service does the following.
//
//   - A value below MadeFiles, in generated forms or in a test's own, is shown as a link to
//     the host that was asked, by HTTP or HTTPS as the request came. Searches see it as it
//     was made.
//   - Every name is a file, whether a result links to it or not. What percent-encodes
//     the same name is the same file.
//   - Bytes, size and ETag follow from the name, so that a test can tell them (Server.FileOf).
//   - A file is given to everybody. A request with a key, a token or a header Authorization
//     is refused with HTTP 400, and logged as such (Request.Secret).
//   - GET and HEAD, ranges and conditions are as RFC 9110 has them; a query is ignored.
//   - The faults file-… strike files alone, and the other rates the API alone; per-minute and
//     latency count for both. What is missing, refused, redirected or unsized follows from
//     the file's name; busy, change and cut come and go by the request's number.
//   - The names of a generated form's files hold the result's id as reference number, one of
//     16 is a signature, and one of eight tries a client unless NoHostile.
//
// The XML varies with the result id, always to the same bytes for the same result:
// <value/> or <value></value>, numbered values or not.
package formservice
