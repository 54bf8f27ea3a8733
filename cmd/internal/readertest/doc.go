// Package readertest opens what formetl writes in the programs that people read it with: DuckDB,
// a PostgreSQL server that the tests start for themselves, and LibreOffice Calc. There is nothing
// in it to import.
//
// Pipelines load tables of PostgreSQL, by the commands as people give them. Readers are SQL
// alone, and kills are those of the real program, at each point of a run.
//
// Tables are made by the statements that `formetl schema ddl` prints, as they are, twice, and
// their columns compared with those asked for. Views of DuckDB read what a pipeline wrote, and
// every cell is compared with what DuckDB reads from Parquet.
//
// Calc opens workbooks and CSV of the profile excel, and its cells are compared with what was
// written.
package readertest
