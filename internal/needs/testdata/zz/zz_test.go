package zz

import (
	"testing"

	"github.com/formetl/formetl/internal/needs"
)

func TestTell(t *testing.T) { needs.Tell(t) }
