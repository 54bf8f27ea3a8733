// Package definition is what a pipeline's files say: definitions, schema files
// and the references to keys in them.
//
// [Load] reads a definition and gives a [Definition] that is checked and
// complete. Every default is filled in, every path is absolute, and references such as
// ${env:NAME} are replaced by what they lead to. Everything that is wrong is found at once
// and without any request, as an [Error] of [Problem]s with lines and remedies.
// A definition names the account ([Source]), which results are read ([Extract]),
// their columns (a schemas.Schema) and where they go ([Output]). A list column
// with explode: true adds a child output.
//
// [LoadSchema] and [FormatSchema] read and write schema files. [ParseWallTime],
// [ParseSpan] and [ParseWindow] read the times of definitions and flags.
// [ExpandPath] puts a form's name into an output's path and refuses names that
// would lead out of the folder in which they stand.
//
// YAML is read strictly, without reflection: a file becomes a tree of values, its references
// are replaced (reference.go), a decoder names the keys of each group with Section, in the
// order in which the keys are read, and what does not fit is noted in the document while reading
// goes on. Unknown, repeated and missing keys are problems; tags, merge keys and several
// documents in one file are refused. No problem shows a secret.
//
// A [Fault] is an error beyond a file's text that people can mend. All packages below
// pipelines report such errors as Faults.
//
// The package asks no service and opens no output. Begin reading at
// [Definition], then in load.go and yaml_section.go.
package definition
