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
	fmt.Stringer // the address for people, without user and password
	Leaser
	// Last returns what the last load left: its manifest, nil if there was none, and its
	// version for Load and Amend.
	Last(ctx context.Context) (m *Manifest, version string, err error)
	// IDs returns the ids of a part's results. The error wraps idset.ErrDamaged if they are not known.
	IDs(ctx context.Context, p Part) (idset.Set, error)
	// Lacking returns those parts of the manifest of which results are missing, because
	// somebody removed their rows.
	Lacking(ctx context.Context, m *Manifest) ([]Part, error)
	// Fit finds what a load of such rows would fail of, before anything is read: a missing
	// schema or right, a table that formetl did not make, a name that the database cuts off,
	// a type that it cannot change. full tells that all rows are replaced.
	Fit(ctx context.Context, rows []TableRows, full bool) error
	// Load carries a load out. It may be done again with the same run id if nobody knows
	// whether it was done. The error wraps ErrConflict if the version is another one.
	Load(ctx context.Context, l TableLoad) (TableChange, error)
	// Holder returns who holds the lease, nil if nobody does.
	Holder(ctx context.Context) (*Holder, error)
	// Amend replaces the manifest and leaves the rows.
	Amend(ctx context.Context, m *Manifest, version string) error
	// Letters returns the dead letters of a part.
	Letters(ctx context.Context, p Part) ([]byte, error)
}

// TableRows are the rows of one table: of the results, or of the elements of a list.
type TableRows struct {
	List    string   // name of the exploded list, "" for the results
	Columns []Column // as in a manifest
	Schema  *arrow.Schema
	// Each calls visit with the rows that were read. A batch is valid only during the call.
	Each func(ctx context.Context, visit func(arrow.RecordBatch) error) error
}

// TableLoad is what a load makes of a table.
type TableLoad struct {
	Manifest Manifest    // as it is after the load
	Version  string      // of the manifest that the run found
	Rows     []TableRows // of all results that were read, those of the results first
	Parts    []TablePart // those of Manifest that are new
	// Replaced are the results of parts that are not in Manifest any more. Their rows go,
	// unless they were read again.
	Replaced idset.Set
	// Full tells that each row goes whose result was not read.
	Full bool
}

// TablePart is what is kept of a new part besides its entry in the manifest.
type TablePart struct {
	Part
	IDs     idset.Set
	Letters []byte // lines of JSON; nil if nothing was rejected
}

// TableChange says how many rows of results a load changed.
type TableChange struct {
	Inserted int64 `json:"inserted"`
	Updated  int64 `json:"updated"`
	Deleted  int64 `json:"deleted"`
}
