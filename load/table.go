package load

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load/idset"
)

// Table is a table of a database, with those of its exploded lists. It holds rows by result
// id, and a load changes it in one transaction: there are no staged objects, no record of a
// commit and no generations. A part of its manifest is a span of time with the ids of its
// results.
type Table interface {
	fmt.Stringer // the table's address for people, without user and password
	Leaser
	// Last returns what the last load left: its manifest, nil if there was none, and its
	// version for Load and Amend.
	Last(ctx context.Context) (m *Manifest, version string, err error)
	// IDs returns the ids of a part's results. The error wraps idset.ErrDamaged if the ids are not
	// known.
	IDs(ctx context.Context, p Part) (idset.Set, error)
	// Lacking returns those parts of the manifest of which results are missing, because
	// somebody removed their rows, and the names of the tables of lists that lack rows of any part.
	Lacking(ctx context.Context, m *Manifest) (parts []Part, lists []string, err error)
	// Fit returns the error that a load of such rows would end with, before anything is read: a
	// missing schema or right, a table that formetl did not make, a name that the database cuts
	// off, a type that it cannot change. full tells that all rows are replaced.
	Fit(ctx context.Context, rows []TableRows, full bool) error
	// Load carries a load out. If it is unknown whether a load was done, it may be done again with
	// the same run id. The error wraps ErrConflict if the manifest has another version than the
	// load's.
	Load(ctx context.Context, l TableLoad) (TableChange, error)
	// Holder returns the holder of the table's lease, nil if nobody holds it.
	Holder(ctx context.Context) (*Holder, error)
	// Amend replaces the table's manifest and leaves the rows.
	Amend(ctx context.Context, m *Manifest, version string) error
	// Letters returns the dead letters of a part.
	Letters(ctx context.Context, p Part) ([]byte, error)
	// LettersTable returns the name of the table with the dead letters, such as formetl.rejects.
	LettersTable() string
}

// FilesTable is the name by which uploaded files stand in TableRows.List.
const FilesTable = "files"

// TableRows are the rows of one table: of the results, or of the elements of a list.
type TableRows struct {
	List    string   // name of the exploded list, or files for uploaded files; "" for the results
	Key     []string // columns that tell the rows of one result apart; none for the results
	Columns []Column // the columns, as in a manifest
	Schema  *arrow.Schema
	// Each calls visit with batches of the rows that were read. A batch is valid only during the
	// call.
	Each func(ctx context.Context, visit func(arrow.RecordBatch) error) error
}

// TableLoad is what a load changes in a table.
type TableLoad struct {
	Manifest Manifest    // the manifest after the load
	Version  string      // version of the manifest that the run found
	Rows     []TableRows // rows of all results that were read; those of lists come last
	Parts    []TablePart // the parts of Manifest that are new
	// Replaced are the results of parts that Manifest no longer lists. Rows of these results are
	// removed, unless the results were read again.
	Replaced idset.Set
	// Full tells that the rows of all results that were not read are removed.
	Full bool
}

// TablePart is a new part of a table, with what is kept of it besides its entry in the
// manifest.
type TablePart struct {
	Part
	IDs     idset.Set
	Letters []byte // the part's dead letters, lines of JSON; nil if nothing was rejected
}

// TableChange says how many rows of results a load changed.
type TableChange struct {
	Inserted int64 `json:"inserted"`
	Updated  int64 `json:"updated"`
	Deleted  int64 `json:"deleted"`
}
