// Package extract reads results from a Form Results Service: it plans a range
// of time into windows and pages through each window by result ids.
//
// A Window is a span of wall-clock time, the only type of one. NewPlan divides a Range into
// windows by counts, or by the calendar where its Period is fixed. A Reader asks for the pages
// of a window in ascending order of id; it names a service that ignores the order, the bounds
// of ids or the dates (BreachError). UndatedRanges finds the results without a date, which no
// bounded window holds. ReadFeed returns the results that changed last, and checks that the
// service sorts by date_update. Halving is how the plan, the check of a run's counts and
// the search for undated results divide a span by counts. A Client speaks one generation of
// the service (extract/v1, extract/v2), and a decoded answer is a page.Page.
//
// The package sends nothing itself (extract/transport), decodes nothing, and knows no schema,
// no file format and no destination. It does not remember what was read. Begin reading at
// NewPlan, WindowReader.Next and ReadFeed.
package extract

import "embed"

// Docs are the topics of the documentation on how results are read, as Markdown.
//
//go:embed *.md
var Docs embed.FS
