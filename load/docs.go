package load

import "embed"

// Docs are the topics of the documentation on formats, spreadsheets and S3, as Markdown.
//
//go:embed *.md
var Docs embed.FS
