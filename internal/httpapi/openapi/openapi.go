package openapi

import (
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Operation is what the document says of a route.
type Operation struct {
	Pattern string // as in httpapi.Route
	Summary string
	Query   []Param
	In, Out any    // values of the bodies' types; nil: none
	Raw     string // a body that is not JSON: "in", "out", "tar in", "tar out", "websocket"
	Status  int    // when all is well
	Also    []int  // further statuses when all is well: with the same body, but for those that have none
	Open    bool   // without a token
	Loose   bool   // the body may be left out
}

// Param is a parameter of the query, or of the header. Kind is JSON's; "strings" may be repeated.
type Param struct {
	Name, Kind, About string
	Values            []string // if there are no others
	Header            bool
}

// Info is what a document says as a whole.
type Info struct {
	Title, About string
	Problem      any                       // a value of the type of errors' bodies
	Required     map[string][]string       // fields that a type of requests needs, by its name; those of answers are known
	Values       map[reflect.Type][]string // of types of text that have no others
}

// object is a JSON object. encoding/json sorts its keys, so that the document does not change from build to build.
type object = map[string]any

// Document renders the description of operations.
func Document(info Info, operations []Operation) map[string]any {
	s := &schemas{Info: info, named: object{}, asked: true}
	for _, op := range operations {
		if op.In != nil {
			s.of(reflect.TypeOf(op.In))
		}
	}
	// Requests come first, because a type that is in both is described as a request's.
	s.asked = false // what was not met yet is in answers only
	paths := object{}
	for _, op := range operations {
		methods, path, _ := strings.Cut(op.Pattern, " ")
		if paths[path] == nil {
			paths[path] = object{}
		}
		for method := range strings.SplitSeq(methods, ",") {
			paths[path].(object)[strings.ToLower(method)] = describe(op, method, path, s)
		}
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": info.Title, "version": "1", "description": info.About,
			"license": object{"name": "Apache 2.0", "identifier": "Apache-2.0"},
		},
		"servers": []any{object{"url": "/"}},
		"paths":   paths,
		"components": object{
			"schemas": s.named,
			"responses": object{"Problem": object{
				"description": "what went wrong", "content": s.jsonOf(info.Problem),
			}},
			"securitySchemes": object{"token": object{"type": "apiKey", "in": "header", "name": "X-Drover-Token"}},
		},
		"security": []any{object{"token": []any{}}},
	}
}

// pathValue finds the parameters of a route's path, such as {runner}.
var pathValue = regexp.MustCompile(`\{(\w+)\}`)

// describe renders one operation for one of its methods. Every operation has the Problem answer as its default;
// only those that need a token have 401 too.
func describe(op Operation, method, path string, s *schemas) object {
	out := object{"summary": op.Summary, "operationId": operationID(method, path)}
	var params []any
	for _, m := range pathValue.FindAllStringSubmatch(path, -1) {
		params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range op.Query {
		params = append(params, p.describe())
	}
	if params != nil {
		out["parameters"] = params
	}
	direction, tar := strings.CutPrefix(op.Raw, "tar ")
	media := "application/octet-stream"
	if tar {
		media = "application/x-tar"
	}
	bytes := object{media: object{"schema": object{"type": "string", "format": "binary"}}}
	switch {
	case op.In != nil:
		out["requestBody"] = object{"required": !op.Loose, "content": s.jsonOf(op.In)}
	case direction == "in":
		out["requestBody"] = object{"required": true, "content": bytes}
	}
	problem := object{"$ref": "#/components/responses/Problem"}
	answers := object{"default": problem}
	if !op.Open {
		answers["401"] = problem
	}
	for _, status := range append([]int{op.Status}, op.Also...) {
		answer := object{"description": http.StatusText(status)}
		switch {
		// By HTTP's rules it has no body.
		case status == http.StatusNotModified:
		case op.Out != nil:
			answer["content"] = s.jsonOf(op.Out)
		case direction == "out":
			answer["content"] = bytes
		}
		answers[strconv.Itoa(status)] = answer
	}
	out["responses"] = answers
	if op.Open {
		out["security"] = []any{}
	}
	return out
}

// operationID makes "getExecutionOutput" of "GET /v1/execution/{execution}/output".
func operationID(method, path string) string {
	id := strings.ToLower(method)
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/v1/"), "/") {
		if !strings.HasPrefix(part, "{") {
			part = strings.ReplaceAll(part, ".", "")
			id += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return id
}

// describe renders one parameter of the query or header. They are all optional; those of the path are described
// with it.
func (p Param) describe() object {
	schema := object{"type": p.Kind}
	if p.Kind == "strings" {
		schema = object{"type": "array", "items": object{"type": "string"}}
	}
	if p.Values != nil {
		schema["enum"] = p.Values
	}
	in := "query"
	if p.Header {
		in = "header"
	}
	return object{"name": p.Name, "in": in, "description": p.About, "schema": schema}
}
