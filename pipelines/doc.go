// Package pipelines runs pipeline definitions: it plans a form's range into
// windows, has them extracted and flattened, spools them, encodes outputs and
// commits each output once.
//
// It knows no concrete format or destination: those come in tables that the
// command line builds.
package pipelines
