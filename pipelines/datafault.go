package pipelines

// DataFault is an error that tells of itself whether the data are at fault:
// whoever resumes from what was read would meet them again. It is what ends a
// command with 65, and a run that ends so keeps nothing of what it read.
type DataFault interface {
	error
	DataFault() bool
}

// DataAtFault tells whether one of the errors in a tree says that the data are
// at fault. What an error wraps does not count where the error itself is
// temporary: an outage is one, whatever its last answer was.
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
