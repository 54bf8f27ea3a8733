// Package extract reads results from a Form Results Service: it plans a range
// of time into windows and pages through each window by result ids.
//
// A Window is a span of wall-clock time. NewPlan divides a range into windows
// by counts (auto) or by the calendar (a fixed Step). A Reader asks for the
// pages of a window in ascending order of id. It notices a service that ignores
// the order, the bounds of ids or the dates. UndatedRanges finds the results
// that no window holds. ReadFeed returns the results that changed last, and proves
// that the service sorts by date_update. Every request goes through the small interface Service.
//
// A decoded answer is a page.Page (extract/page). Retries, the bound on
// requests and the budget are in extract/transport. The requests and answers of
// the two generations of the service are in extract/v1 and extract/v2, which this package does
// not import.
//
// The package knows no schema, no file format and no destination. Begin
// reading at NewPlan, at WindowReader.Next and at ReadFeed.
package extract

import "embed"

// Docs are the topics of the documentation on how results are read, as Markdown.
//
//go:embed *.md
var Docs embed.FS
