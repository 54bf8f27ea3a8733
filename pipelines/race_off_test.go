//go:build !race

package pipelines_test

const underRace = false
