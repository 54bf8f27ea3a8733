package zz

import (
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
)

func TestTell(t *testing.T) { needs.Tell(t) }
