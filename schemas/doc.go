// Package schemas says what columns a data set has: their names, types and
// sources. It also holds the rules for values that do not fit, for personal data,
// and for fields that nobody listed.
//
// A column is known by its source (result_id, meta:ID or item:ID); names may
// change. Columns that turn up during a run get names that depend on their source
// alone (Late), so that windows agree on them in any order (Merge).
//
// The package knows Arrow's types and nothing of the service or of file formats,
// and it reads no schema files. Begin reading with Schema.
package schemas
