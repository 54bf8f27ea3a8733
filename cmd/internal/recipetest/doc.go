// Package recipetest runs the definitions of pipelines/examples against the test
// service, and has each recipe of pipelines/examples/recipes checked by the tool that
// it is for. It also runs what the image of cmd/formetl/Dockerfile would hold. It holds
// tests only.
package recipetest
