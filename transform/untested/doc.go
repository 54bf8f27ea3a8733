// Package untested tells what the tests left out. `go test ./...` reports it
// last, by its name, so its lines are the last ones. See package needs.
package untested
