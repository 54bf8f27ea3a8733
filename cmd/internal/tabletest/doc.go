// Package tabletest runs pipelines into tables of a PostgreSQL server that the tests start
// for themselves. It holds tests only.
//
// A form service is read over HTTP, by the commands as people give them. Readers are SQL
// alone. Kills are those of the real program, at each point of a run.
package tabletest
