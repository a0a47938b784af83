package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// document is what we read of an OpenAPI document.
type document struct {
	Paths map[string]map[string]struct {
		Summary    string
		Parameters []struct {
			Name, In, Description string
		}
		RequestBody *struct {
			Content map[string]struct{ Schema schema }
		}
		Responses map[string]struct {
			Content map[string]struct{ Schema schema }
		}
	}
	Components struct{ Schemas map[string]schema }
}

// schema is what we read of a JSON schema: enough to name what a body holds.
type schema struct {
	Ref         string `json:"$ref"`
	Type        any
	Format      string
	Description string
	Properties  map[string]schema
	Items       *schema
}

// nativeAPI lists the operations of the native API and the objects that they take and give.
func nativeAPI(root string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, "internal/httpapi/native/openapi.json"))
	if err != nil {
		return "", err
	}
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		return "", fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	var text strings.Builder
	text.WriteString("# The native HTTP API: operations\n\n" +
		"The agent serves the whole document, with all schemas, at `/v1/openapi.json`. [The guide](../http-api.md) explains how the\n" +
		"operations belong together.\n\n")
	// Paths and methods are sorted, as the page must not change when only the order of the document does.
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			op := doc.Paths[path][method]
			fmt.Fprintf(&text, "## `%s %s`\n\n%s\n\n", strings.ToUpper(method), path, sentence(op.Summary))
			if op.RequestBody != nil {
				for _, kind := range slices.Sorted(maps.Keys(op.RequestBody.Content)) {
					fmt.Fprintf(&text, "Takes %s.\n", body(kind, op.RequestBody.Content[kind].Schema))
				}
			}
			for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
				if status >= "4" { // a problem, which all operations can answer
					continue
				}
				answer := "Answers " + status
				for _, kind := range slices.Sorted(maps.Keys(op.Responses[status].Content)) {
					answer += ": " + body(kind, op.Responses[status].Content[kind].Schema)
				}
				text.WriteString(answer + ".\n")
			}
			text.WriteString("\n")
			rows, some := newTable("Parameter", "In", "Meaning"), false
			for _, p := range op.Parameters {
				if p.In != "path" {
					rows.row(code(p.Name), p.In, sentence(p.Description))
					some = true
				}
			}
			if some {
				text.WriteString(rows.String() + "\n")
			}
		}
	}
	return text.String(), nil
}

// body names what a body is: a schema's name, or the media type.
func body(kind string, s schema) string {
	switch {
	case s.Ref != "":
		return "`" + s.Ref[strings.LastIndexByte(s.Ref, '/')+1:] + "`"
	case s.Items != nil && s.Items.Ref != "":
		return "a list of " + body(kind, *s.Items)
	}
	return "`" + kind + "`"
}
