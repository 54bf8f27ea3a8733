package extract

import "embed"

// Docs are the topics of the documentation on how results are read, as Markdown.
//
//go:embed *.md
var Docs embed.FS
