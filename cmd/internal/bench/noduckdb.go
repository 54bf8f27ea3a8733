//go:build !cgo

package main

import (
	"context"
	"errors"
)

// toParquet needs a C compiler.
func toParquet(context.Context, string, string) error {
	return errors.New("the anchor duckdb needs cgo: set CGO_ENABLED=1 and install a C compiler")
}
