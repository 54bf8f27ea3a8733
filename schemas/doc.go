// Package schemas says what columns a data set has: their names, types and
// sources. It also holds the rules for values that do not fit, for personal data,
// and for fields that no schema file lists.
//
// A column is identified by its source (result_id, meta:ID, item:ID or other:ID), while its name may
// change. Columns that first appear during a run get names that depend on their source alone
// (Late). So windows that are read in any order agree on the names (Merge).
//
// The package knows Arrow's types, but neither the service nor file formats. It
// reads no schema files. Begin reading with Schema; DefaultName names a column, and Uniquer
// makes the name unique.
package schemas

import "embed"

// Docs are the topics of the documentation on columns, personal data and warehouses, as Markdown.
//
//go:embed *.md
var Docs embed.FS
