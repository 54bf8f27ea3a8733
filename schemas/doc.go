// Package schemas says what columns a data set has: their names, types and
// sources, what happens to values that do not fit and to fields that nobody
// listed. It knows Arrow's types and nothing of the service or of file formats.
package schemas
