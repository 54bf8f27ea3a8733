package pipelines_test

import (
	"errors"

	"github.com/formetl/formetl/pipelines/account"
)

func isNoForms(err error) bool {
	var none *account.NoFormsError
	return errors.As(err, &none)
}
