package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/clitest"
)

// kinds are the JSON types that slog's constructors write.
func kinds() map[string]string {
	return map[string]string{
		"String": "string", "Int": "number", "Int64": "number", "Uint64": "number", "Float64": "number", "Duration": "number",
		"Bool": "boolean", "Time": "string", "Any": "any", "Group": "group",
	}
}

// logKeys are the keys of all slog attributes in shipped files, each with the
// type of its value.
func logKeys(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(clitest.ModuleRoot, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "testdata" {
			return err
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				noteKey(t, set, call, found)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// noteKey notes the key of a call such as slog.Int("rows", n).
func noteKey(t *testing.T, set *token.FileSet, call *ast.CallExpr, found map[string]string) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if ok && len(call.Args) > 1 && slices.Contains([]string{"Debug", "Info", "Warn"}, selector.Sel.Name) {
		t.Errorf("%s: log by LogAttrs, so that every key stands in an attribute", set.Position(call.Pos()))
	}
	if !ok || len(call.Args) != 2 {
		return
	}
	in, ok := selector.X.(*ast.Ident)
	kind := kinds()[selector.Sel.Name]
	if !ok || in.Name != "slog" || kind == "" {
		return
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		if text := set.Position(call.Pos()); !strings.HasSuffix(text.Filename, "telemetry/log.go") { // the handler's own
			t.Errorf("%s: write the key as it is, so that it can be found", text)
		}
		return
	}
	key, err := strconv.Unquote(literal.Value)
	if err != nil {
		t.Fatal(err)
	}
	if before := found[key]; before != "" && before != kind {
		t.Errorf("%s: %s is a %s here and a %s elsewhere: what indexes logs takes one type a key", set.Position(call.Pos()), key, kind, before)
	}
	found[key] = kind
}

// TestLogKeysAreDocumented holds the keys of logs to the README's list: what
// reads logs is written against it, so a new key is a conscious act.
func TestLogKeysAreDocumented(t *testing.T) {
	keys := slices.Collect(maps.Keys(logKeys(t)))
	for _, key := range keys {
		if !regexp.MustCompile(`^[a-z]+(_[a-z0-9]+)*$`).MatchString(key) {
			t.Errorf("the key %q is not in snake case", key)
		}
	}
	clitest.SameNames(t, "key", clitest.ReadmeTable(t, "Logs"), append(keys, "time", "level", "msg"))
}
