// Package jsonapi is the JSON generation of the service (API v2) for package
// formservice: paths, tokens, parameters, answers and webhooks.
//
// It knows no results of its own. Package formservice describes a form by
// [Form], and reads what a [Selection] asks for.
package jsonapi
