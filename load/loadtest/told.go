package loadtest

import "errors"

// Told returns the text of an error and, behind it, that of its hint.
func Told(err error) string {
	var says interface {
		error
		Hint() string
	}
	if errors.As(err, &says) {
		return err.Error() + "; " + says.Hint()
	}
	return err.Error()
}
