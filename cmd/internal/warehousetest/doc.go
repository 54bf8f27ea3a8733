// Package warehousetest runs what `formetl schema ddl` prints on real engines:
// DuckDB, and a PostgreSQL server that the tests start for themselves. It holds
// tests only.
//
// A pipeline runs against a real form service, the printed statements go to
// the engine as they are, twice, and every cell of the table is compared with
// what DuckDB reads from Parquet.
package warehousetest
