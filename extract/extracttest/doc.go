// Package extracttest serves the tests of extract, of the packages below it and
// of pipelines: clients of a test service, answers made by hand, and windows
// written as text. Only tests import it. Begin reading with Serve.
package extracttest
