// Package postgres is a destination in a PostgreSQL database: the rows of a dataset are
// those of one table.
//
// A part of the dataset is a set of rows. It is staged by COPY into a staging table of its
// run, which nobody reads. A commit moves the rows into the table, in one transaction with
// the manifest and the removal of superseded parts. So a reader sees whole runs alone,
// and data and watermark cannot disagree.
//
// All that formetl needs besides the rows lies in tables of the same schema, each with the
// table's name as its first column:
//
//   - _formetl_objects: the manifest, the id sets, the record of a commit and so on, as a
//     dataset in a folder has them. A part is an entry without data.
//   - _formetl_ids: which rows a part has, by the ids of their results.
//   - _formetl_runs: what each run committed, for people.
//   - _formetl_staged: what is staged. The rows lie in tables _formetl_staged_….
//   - _formetl_leases: who writes now. The lease itself is an advisory lock, which the
//     server releases when the connection ends.
//
// The bytes of a part are a line that describes its columns, followed by the rows in the
// binary format of COPY. The server prints equal rows as equal bytes, so Open returns what
// was staged, and the checksum in the manifest tells whether somebody changed a row.
//
// The password is in the DSN alone. No address, error or table holds it. Begin reading with
// New, then session.commit and Destination.Transact.
package postgres
