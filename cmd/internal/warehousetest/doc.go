// Package warehousetest runs what `formetl schema ddl` prints on real engines:
// DuckDB, and a PostgreSQL server that the tests start for themselves. It holds
// tests only.
//
// Tables are made by the printed statements as they are, twice, and their columns
// compared with those asked for. Views of DuckDB read what a pipeline wrote, and
// every cell is compared with what DuckDB reads from Parquet.
package warehousetest
