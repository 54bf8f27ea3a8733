// Package transform turns the pages of extract into Arrow record batches by a
// schema of package schemas.
//
// A Flattener fills batches across pages: a page holds at most 100 results, a
// batch thousands of rows. Each field of a page is matched to its column once
// per page. From there values go as views of the page into Arrow's builders,
// without a string, a map or an allocation per value.
//
// A row is settled before it is written: every value of a result is parsed
// first. So a result that is rejected leaves no trace in any column.
//
// For a run without a schema, Infer makes one from a sample of pages. A Learner
// proposes the columns and types of a schema file.
//
// # How values become typed
//
// A value fits its column's type only as follows. The on_error rule of the column
// decides about a value that does not fit. Blanks (space, tab, line ends)
// around a value are dropped for every type but string.
//
//	string     any value, unchanged
//	int64      decimal digits with an optional sign; leading zeros are allowed
//	float64    decimal or scientific notation; no NaN, infinity, hexadecimal or "_"
//	bool       true, false (any letter case), 1, 0
//	date       YYYY-MM-DD, years 0001 to 9999
//	timestamp  YYYY-MM-DD HH:MM:SS in the account's zone, the form of the
//	           service (extract.WireTime); also with "T" for the blank, with up
//	           to six digits of a fraction, and with Z or ±HH:MM, which then
//	           replaces the account's zone; years 1 to 9999 in UTC and in
//	           the account's zone
//	decimal    digits with an optional sign and point, exactly: more fraction
//	           digits than the scale fit only if they are zeros
//	list<T>    every element as T
//
// A column that declares a form (schemas.Reading) takes values of that form
// and no others:
//
//	date, timestamp  the first of the formats that the value fits as a whole
//	                 (schemas.ParseFormat); parts of a time that it lacks are
//	                 0; without an offset it is of the account's zone
//	bool             the words, whatever their letter case (Unicode simple
//	                 folding)
//	int64, float64,  as above, with the declared separators of fractions and
//	decimal          groups; groups have three digits, the first one to three,
//	                 or there are none; without a declared separator of
//	                 fractions it is the point
//
// An empty value is not parsed. It is "" in a string column, an empty
// list in a list column and null in any other column. schemas.EmptyAsNull makes it
// null in all columns.
// Null, and an item that the result lacks, do not fit a column that says
// nullable: false.
//
// Wall-clock times follow RFC 5545. A time that a zone shows twice (the end of DST)
// is the first of the two. A time that it skips (the start of DST) is read with the
// offset before the change, which moves it forward by the length of the gap.
// Stats.Shifted counts such moves.
//
// The package writes no files and knows no formats. It reads nothing but pages.
// Begin reading at Flattener.Append, and at Infer for schemas.
package transform
