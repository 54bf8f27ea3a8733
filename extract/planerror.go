package extract

// PlanError is a range that cannot be divided as it was asked for. Nothing is
// wrong with the service: the definition has to change.
type PlanError struct{ Problem string }

// Error says what is wrong and what to do.
func (e *PlanError) Error() string { return e.Problem }
