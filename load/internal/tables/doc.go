// Package tables keeps the rows of a dataset in one table of a database, whichever database
// it is. A package for one kind of database gives the connection, the dialect, and the place
// where rows are staged.
//
// The rows of a part have one form of bytes: a line that describes the columns, followed by
// the rows as PostgreSQL's COPY has them in its binary format. A table prints equal rows as
// equal bytes, so the checksum in the manifest tells whether somebody changed a row.
//
// What formetl needs besides the rows lies in tables of the same schema: objects, ids and
// runs. They have the same columns in each database. Begin reading with Session, then
// Transaction.
package tables
