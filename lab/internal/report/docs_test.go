package report

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// jsonPage begins docs/reference/json.md. The tables behind it are made of the fields' comments.
const jsonPage = `# Fields of JSON

A later version may add fields, and removes or changes none. A program that reads them should ignore unknown fields. Fields that say "optional" are missing where nothing was measured, or nothing is to be said.

This page is made from the comments in internal/page/result/result.go and internal/page/pagejson/pagejson.go; a test keeps them equal.

## Measurements

` + "`go run ./lab -format json`" + ` writes a list of objects, each on its own line. Times are measured here; only published has figures of others.
`

// inspectPage begins the part about the page of package inspect.
const inspectPage = `
## The page of package inspect

These are the files below the address of inspect.Handler. Times are in RFC 3339.
`

// TestJSONPage compares docs/reference/json.md with the comments of the fields. With -update the page is
// written anew.
func TestJSONPage(t *testing.T) {
	want := strings.Builder{}
	want.WriteString(jsonPage)
	for _, table := range []struct{ title, file, name string }{
		{"A row", "internal/page/result/result.go", "Row"},
		{"versus and cpu_versus", "internal/page/result/result.go", "Ratio"},
		{"bars", "internal/page/result/result.go", "Bar"},
		{"published", "internal/page/result/result.go", "Published"},
		{"machine", "internal/page/result/result.go", "Machine"},
		{"all.json, arenas.json, and a file for each table", "internal/page/pagejson/pagejson.go", "Figures"},
		{"verdict, and verdict.json", "internal/page/pagejson/pagejson.go", "Verdict"},
		{"overview", "internal/page/pagejson/pagejson.go", "Overview"},
		{"parts", "internal/page/pagejson/pagejson.go", "Part"},
		{"legend", "internal/page/pagejson/pagejson.go", "Legend"},
		{"tables", "internal/page/pagejson/pagejson.go", "Table"},
		{"metrics", "internal/page/pagejson/pagejson.go", "Heading"},
		{"rows", "internal/page/pagejson/pagejson.go", "TableRow"},
		{"history.json, a list", "internal/page/pagejson/pagejson.go", "Point"},
		{"suspects.json", "internal/page/pagejson/pagejson.go", "SuspectFigures"},
		{"suspects, and what inspect.ServeSuspects lists", "internal/page/pagejson/pagejson.go", "Suspect"},
		{"largest", "internal/page/pagejson/pagejson.go", "LargestSuspect"},
		{"growth.json", "internal/page/pagejson/pagejson.go", "GrowthFigures"},
		{"suspects of growth.json", "internal/page/pagejson/pagejson.go", "Growth"},
	} {
		if table.name == "Figures" {
			want.WriteString(inspectPage)
		}
		fmt.Fprintf(&want, "\n### %s\n\n| field | type | meaning |\n| --- | --- | --- |\n", table.title)
		for _, f := range jsonFields(t, table.file, table.name) {
			if f.text == "" {
				t.Errorf("%s: the field %s of %s has no comment", table.file, f.name, table.name)
			}
			fmt.Fprintf(&want, "| `%s` | %s | %s |\n", f.name, f.kind, f.text)
		}
	}
	path, _ := document(t, "docs/reference/json.md")
	golden(t, path, want.String())
}

type jsonField struct{ name, kind, text string }

// jsonFields returns the fields of a struct of a file that are in JSON.
func jsonFields(t *testing.T, file, name string) []jsonField {
	t.Helper()
	path, text := document(t, file)
	f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var all []jsonField
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			if field.Tag == nil {
				continue
			}
			tag, err := strconv.Unquote(field.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			key, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			if key == "" || key == "-" {
				continue
			}
			comment := strings.TrimSpace(strings.ReplaceAll(field.Doc.Text()+field.Comment.Text(), "\n", " "))
			for _, verb := range []string{" is ", " are ", " has ", " says "} {
				comment = strings.TrimPrefix(comment, field.Names[0].Name+verb)
			}
			if options == "omitempty" {
				comment = "optional: " + comment
			}
			all = append(all, jsonField{key, jsonKind(field.Type), strings.TrimSuffix(comment, ".")})
		}
		return false
	})
	if len(all) == 0 {
		t.Fatalf("%s has no fields of %s in JSON", file, name)
	}
	return all
}

// jsonKind names the type of JSON in which an expression's values are written.
func jsonKind(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.ArrayType:
		if kind := jsonKind(e.Elt); kind != "object" {
			return "list of " + kind + "s"
		}
		return "list of objects"
	case *ast.StarExpr:
		return jsonKind(e.X)
	case *ast.Ident:
		switch e.Name {
		case "string", "Doubt":
			return "string"
		case "bool":
			return "boolean"
		case "int", "int64", "float64":
			return "number"
		}
	case *ast.SelectorExpr:
		switch e.Sel.Name {
		case "Time":
			return "string"
		case "Duration":
			return "number"
		}
	}
	return "object"
}
