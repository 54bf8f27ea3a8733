// Package detail collects what a run does in more detail than its report tells: when
// each window of time was read and by how many requests, how many results each day has,
// and what the columns hold. The page of a run shows that; programs read the report.
//
// An Observer watches one form. All its methods do nothing on a nil Observer, so a run that
// nobody wants the detail of has one and pays nothing. Its memory is bounded: windows that
// are too many share a span, and so do moments.
//
// No value of a column with a rule for personal data is collected, not even as the rule
// leaves it. The package asks no service and writes nothing. Begin reading at Observer.
package detail
