package pipelines

import "github.com/formetl/formetl/pipelines/internal/strictyaml"

// DefinitionError lists everything that is wrong in a definition or schema
// file. Its exit code is 78.
type DefinitionError = strictyaml.Error

// Problem is one thing that is wrong in a definition or schema file.
type Problem = strictyaml.Problem
