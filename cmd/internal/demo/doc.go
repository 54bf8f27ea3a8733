// Package demo is what `formetl demo` leaves and says: the folder with its definition and
// key, and the summary for a newcomer.
//
// The command line runs the service and the pipeline. Begin reading at Folder.Check.
package demo

// Settings say how large the demo is and where it is.
type Settings struct {
	Results int
	Dir     string
}

// DefaultResults is how many results the demo's service holds if no flag says it.
const DefaultResults = 5000
