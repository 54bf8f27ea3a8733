//go:build !race

package extract_test

// manyResults is the size of the form that TestRequestCost takes whole: that
// of the bound in design.md.
const manyResults = 200_000
