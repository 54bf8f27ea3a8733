// Package strictyaml reads YAML files strictly: every problem of a file at once,
// each with its line, its key and a remedy.
//
// [Read] parses a file and gives its root [Value]. A decoder names the keys of a
// group with [Value.Section]. It reads a value into a variable ([Text], [Integer],
// ...) or by hand ([Value.Text], [Value.List], ...). What does not fit is noted in the
// [Document], and reading goes on; [Document.Err] gives all problems as one
// [Error]. Unknown, repeated and missing keys are problems. Anchors and aliases
// are followed; tags, merge keys and several documents in one file are refused.
//
// No problem shows a secret. What may hold one is read as [Value.Hidden]. An
// unknown key is shown only where it looks like a key.
//
// The package decodes no types by reflection, writes no YAML and knows nothing
// of definitions. Begin reading at [Value.Section].
package strictyaml
