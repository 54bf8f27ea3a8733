package extract

// Operator is a search operator of Get Results (specification, section 4.5).
type Operator string

// The search operators.
const (
	OpEquals   Operator = "equals"
	OpContains Operator = "contains"
	OpBegins   Operator = "begins"
	OpEnds     Operator = "ends"
	OpEmpty    Operator = "empty"     // presence only: no term
	OpNotEmpty Operator = "not_empty" // presence only: no term
)

// Criterion is one search parameter: a meta or item id, an operator, a term.
type Criterion struct {
	Column   string
	Operator Operator
	Term     string
}

// Search restricts the results. The service takes at most one criterion per
// operator and column (specification, section 4.5, rule 2).
type Search struct {
	Any   bool // criteria combine by "or"; else by "and"
	Where []Criterion
}
