package schemas_test

import (
	"testing"

	"github.com/formetl/formetl/schemas"
)

// A form may give one label to thousands of questions. Each more of them costs
// as much as the one before: what is allocated tells, on any machine.
func TestUniquerIsLinear(t *testing.T) {
	allocated := func(names int) float64 {
		return testing.AllocsPerRun(2, func() {
			var u schemas.Uniquer
			for range names {
				u.Name("question")
			}
		})
	}
	if few, many := allocated(1_000), allocated(8_000); many > 16*few {
		t.Errorf("1,000 equal names take %.0f allocations, 8,000 take %.0f", few, many)
	}
}
