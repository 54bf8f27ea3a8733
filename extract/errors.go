package extract

import (
	"errors"
	"fmt"
)

// ErrNoCount means that the service's answers do not tell how many results match.
// Callers then find out by reading. It is no fault of the run.
var ErrNoCount = errors.New("the service's answers do not tell how many results match")

// BreachError reports that the service breaks its specification: it ignores what it was
// asked for, also when it was asked once more.
type BreachError struct {
	Ignores string // "the ascending order of ids"
	Proof   string // what showed it: "result 5 came after result 7"
}

// Error names what was ignored and what shows more.
func (e *BreachError) Error() string {
	return fmt.Sprintf("the service breaks its specification: it ignores %s (asked twice, %s); `formetl doctor` shows what it honours", e.Ignores, e.Proof)
}

// ExitCode is 65: another run would meet the same service.
func (e *BreachError) ExitCode() int { return 65 }

// Hint says what to show to those who can mend it.
func (e *BreachError) Hint() string { return ShowDoctor }

// ShowDoctor is the hint where a service does not do what it promises.
const ShowDoctor = "send the table that `formetl doctor DEFINITION` prints to those who run the service; it holds no answers. `formetl init` writes a definition"
