package program

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
)

// versionFile declares the constant Version.
const versionFile = "relay/contract/contract.go"

// Version reads the release's version, X.Y.Z, from the checkout at root. It is
// read from the source because this module does not link the product's.
func Version(root string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(versionFile)), nil, parser.SkipObjectResolution)
	if err != nil {
		return "", fmt.Errorf("read the version: %w; is %s the project's root?", err, root)
	}
	for _, declaration := range file.Decls {
		constants, ok := declaration.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}
		for _, spec := range constants.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok || len(value.Names) != 1 || value.Names[0].Name != "Version" || len(value.Values) != 1 {
				continue
			}
			if literal, ok := value.Values[0].(*ast.BasicLit); ok {
				return strconv.Unquote(literal.Value)
			}
		}
	}
	return "", fmt.Errorf("%s has no constant Version with a text: the images' tag is that", versionFile)
}
