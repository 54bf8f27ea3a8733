package extract

import "testing"

func TestCodesHaveAMeaning(t *testing.T) {
	for code := -1; code < 110; code++ {
		if codeMeaning(code) == "" {
			t.Errorf("code %d has no words", code)
		}
	}
}
