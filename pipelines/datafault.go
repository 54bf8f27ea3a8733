package pipelines

// DataFault is an error that tells whether the data are at fault. Such an error
// ends a command with 65. A run that it ends keeps no checkpoint, because the next
// one would meet the same data.
type DataFault interface {
	error
	DataFault() bool
}

// DataAtFault tells whether one of the errors in a tree says that the data are
// at fault. A temporary error never does, whatever it wraps: an outage is one,
// whatever the last answer was.
func DataAtFault(err error) bool {
	if d, ok := err.(DataFault); ok { //nolint:errorlint // the tree is walked by hand
		return d.DataFault()
	}
	if t, ok := err.(interface{ Temporary() bool }); ok && t.Temporary() {
		return false
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return DataAtFault(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if DataAtFault(one) {
				return true
			}
		}
	}
	return false
}
