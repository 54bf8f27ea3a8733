package extract

// Step is the size of fixed windows: so many months, days or seconds of
// wall-clock time, exactly one of them greater than zero. The zero Step is
// "auto": windows are sized by counts.
type Step struct {
	Months, Days, Seconds int
}

// Auto tells whether windows are sized by counts.
func (s Step) Auto() bool { return s == Step{} }
