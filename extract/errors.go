package extract

import (
	"errors"
	"fmt"
)

// ErrNoCount means that the service does not say how many results match. Callers
// then read the results to find out. The error does not make the run fail.
var ErrNoCount = errors.New("the service does not say how many results there are")

// BreachError reports that the service breaks its specification: it ignores a part of the
// request, also when the request was sent once more.
type BreachError struct {
	Ignores string // "the ascending order of ids"
	Proof   string // the observation that proves the breach: "result 5 came after result 7"
}

// Error names what the service ignored, the proof, and the command that shows more.
func (e *BreachError) Error() string {
	return fmt.Sprintf("the service does not do what its specification says: it ignores %s, also when asked a second time (%s); nothing was written", e.Ignores, e.Proof)
}

// ExitCode is 65: another run would find the service in breach again.
func (e *BreachError) ExitCode() int { return 65 }

// Hint says what to send to those who run the service, see ShowDoctor.
func (e *BreachError) Hint() string { return ShowDoctor }

// ShowDoctor is the hint for an error where the service does not do what its specification says.
const ShowDoctor = "only those who run the service can mend it: send them this message and the table that `formetl doctor DEFINITION` prints, which contains no answers (`formetl init` writes a definition)"
