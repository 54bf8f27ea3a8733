package schemas

import "embed"

// Docs are the topics of the documentation on columns, personal data and warehouses, as Markdown.
//
//go:embed *.md
var Docs embed.FS
