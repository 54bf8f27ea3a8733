package load_test

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
)

func TestCheckSchema(t *testing.T) {
	a, b := arrow.Field{Name: "a", Type: arrow.BinaryTypes.String}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.String}
	if err := load.CheckSchema(arrow.NewSchema([]arrow.Field{a, b}, nil)); err != nil {
		t.Error(err)
	}
	for want, fields := range map[string][]arrow.Field{"at least one column": nil, `"a" is used twice`: {a, b, a}} {
		if err := load.CheckSchema(arrow.NewSchema(fields, nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d columns: %v", len(fields), err)
		}
	}
}
