package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// source is what a package's files say beside what reflection tells: comments, and tables of texts.
type source struct {
	files []*ast.File
}

// parseSource parses the Go files of a folder, without tests. A folder that is not there has no files. Errors: syntax.
func parseSource(dir string) (*source, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	s := &source{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, data, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parsing %s: %w", path, err)
		}
		s.files = append(s.files, f)
	}
	return s, nil
}

// specs calls f with each declaration of a type, a variable or a constant, and the comment before it.
func (s *source) specs(f func(spec ast.Spec, doc *ast.CommentGroup)) {
	for _, file := range s.files {
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				for _, spec := range g.Specs {
					f(spec, g.Doc)
				}
			}
		}
	}
}

// typeComment returns the first paragraph of a type's comment; "" if there is none.
func (s *source) typeComment(name string) (text string) {
	s.specs(func(spec ast.Spec, doc *ast.CommentGroup) {
		if t, ok := spec.(*ast.TypeSpec); ok && t.Name.Name == name {
			first, _, _ := strings.Cut(doc.Text(), "\n\n")
			text = strings.Join(strings.Fields(first), " ")
		}
	})
	return text
}

// fieldComments returns the comments of a struct's fields by their names; empty if there is no such struct.
func (s *source) fieldComments(typeName string) map[string]string {
	out := map[string]string{}
	s.specs(func(spec ast.Spec, _ *ast.CommentGroup) {
		t, ok := spec.(*ast.TypeSpec)
		if !ok || t.Name.Name != typeName {
			return
		}
		st, ok := t.Type.(*ast.StructType)
		if !ok {
			return
		}
		for _, f := range st.Fields.List {
			for _, n := range f.Names {
				out[n.Name] = strings.TrimSpace(joined(f.Doc) + " " + joined(f.Comment))
			}
		}
	})
	return out
}

// constantComments returns the comments on the lines of the constants of a block, in order, where the first one has this type.
func (s *source) constantComments(typeName string) (comments []string) {
	for _, file := range s.files {
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			first, _ := g.Specs[0].(*ast.ValueSpec)
			if id, ok := first.Type.(*ast.Ident); !ok || id.Name != typeName {
				continue
			}
			for _, spec := range g.Specs {
				comments = append(comments, joined(spec.(*ast.ValueSpec).Comment))
			}
		}
	}
	return comments
}

// joined returns the text of a comment on one line; "" if there is no comment.
func joined(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	return strings.Join(strings.Fields(c.Text()), " ")
}
