package pipelines

import "embed"

// Docs are the topics of the documentation on definitions and their runs, as Markdown.
//
//go:embed *.md
var Docs embed.FS
