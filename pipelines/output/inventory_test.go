package output

import (
	"errors"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

func TestUnlistedPartsAreNamed(t *testing.T) {
	i := load.Inventory{}
	for range 120 {
		i.Unlisted = append(i.Unlisted, load.Object{Name: "part-min-max-000001-0000.csv"})
	}
	fault, _ := errors.AsType[*definition.Fault](Unlisted(&definition.Definition{File: "x.yaml"}, "lake/feedback/", &load.Manifest{}, i))
	for _, say := range []string{"lake/feedback/ contains 120 parts", "part-min-max-000001-0000.csv and 117 more", "`formetl run x.yaml --full`", "`formetl clean x.yaml --unlisted`"} {
		if fault == nil || !strings.Contains(fault.Text+fault.Cure, say) {
			t.Errorf("%q is not said: %v", say, fault)
		}
	}
}
