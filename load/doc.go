// Package load writes record batches to files and datasets, and makes a run's
// output visible either whole or not at all.
//
// An Encoder turns batches into the bytes of one format. A Destination is a folder or a prefix
// of a bucket. It stages data objects in two steps: Prepare makes them durable, Commit makes
// them visible. Its Store keeps small objects, and its Leaser lets one run write at a time. A
// dataset is a set of parts that its Manifest lists; a single file has a manifest beside it. A
// Commit is recorded at the destination first, so Recover can finish the commit if its process
// died. The function find finds what runs left behind: it lists the objects at a destination
// and compares them with what leases, records and the manifest name. Look reports the
// leftovers, and Clean removes them. A Table of a database holds rows by id and needs none of
// that.
//
// The package knows no form service and no schema file, and it opens no files:
// formats and destinations are sub-packages that import this one. The command
// line lists them in tables; nothing registers itself.
//
// Begin reading with Destination (destination.go), then Commit.Do
// (commit.go), then find (find.go). Package loadtest holds the
// tests that every encoder and destination must pass.
package load

import "embed"

// Docs are the topics of the documentation on formats, spreadsheets, S3 and databases, as
// Markdown.
//
//go:embed *.md
var Docs embed.FS
