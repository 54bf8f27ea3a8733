package recipetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/formetl/formetl/cmd/internal/clitest"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestOtherSystems has the programs type-checked for the systems that no test runs on.
// To compile them would take minutes for each. Of libraries only what they declare is
// looked at.
func TestOtherSystems(t *testing.T) {
	needs.Long(t)
	root, err := filepath.Abs(clitest.ModuleRoot)
	if err != nil {
		t.Fatal(err)
	}
	parse := func(files *token.FileSet, name string, text []byte) (*ast.File, error) {
		file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil || strings.HasPrefix(name, root+string(filepath.Separator)) {
			return file, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				f.Body = nil
			}
		}
		return file, nil
	}
	for _, target := range []string{"windows/amd64", "darwin/arm64"} {
		system, processor, _ := strings.Cut(target, "/")
		found, err := packages.Load(&packages.Config{
			Context:    t.Context(),
			Dir:        root,
			Mode:       packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes,
			Env:        append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0"),
			BuildFlags: []string{"-tags=arrow_json_stdlib"},
			ParseFile:  parse,
		}, "./cmd/formetl", "./cmd/formserver")
		if err != nil {
			t.Fatal(err)
		}
		own := 0
		packages.Visit(found, nil, func(p *packages.Package) {
			if !strings.HasPrefix(p.PkgPath, "github.com/formetl/formetl/") {
				return
			}
			own++
			for _, err := range p.Errors {
				t.Errorf("%s: %v", target, err)
			}
		})
		if own < 40 {
			t.Errorf("%s: only %d packages were checked", target, own)
		}
	}
}
