// Package openapi describes the operations of faces as an OpenAPI document.
package openapi

import (
	"encoding"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Operation is what the document says of a route.
type Operation struct {
	Pattern string // as in httpapi.Route
	Summary string
	Query   []Param
	In, Out any    // values of the bodies' types; nil: none
	Raw     string // a body that is not JSON: "in", "out", "websocket"
	Status  int    // when all is well
	Open    bool   // without a token
	Loose   bool   // the body may be left out
}

// Param is a parameter of the query.
type Param struct{ Name, Kind, About string }

type object = map[string]any

// Document renders the description of operations whose errors are problem's type.
func Document(title, about string, problem any, operations []Operation) map[string]any {
	s := schemas{}
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
		"info":    object{"title": title, "version": "1", "description": about},
		"paths":   paths,
		"components": object{
			"schemas": s,
			"responses": object{"Problem": object{
				"description": "what went wrong", "content": jsonOf(problem, s),
			}},
			"securitySchemes": object{"token": object{"type": "apiKey", "in": "header", "name": "X-Drover-Token"}},
		},
		"security": []any{object{"token": []any{}}},
	}
}

var pathValue = regexp.MustCompile(`\{(\w+)\}`)

func describe(op Operation, method, path string, s schemas) object {
	out := object{"summary": op.Summary, "operationId": operationID(method, path)}
	var params []any
	for _, m := range pathValue.FindAllStringSubmatch(path, -1) {
		params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range op.Query {
		params = append(params, object{
			"name": p.Name, "in": "query", "description": p.About, "schema": object{"type": p.Kind},
		})
	}
	if params != nil {
		out["parameters"] = params
	}
	bytes := object{"application/octet-stream": object{"schema": object{"type": "string", "format": "binary"}}}
	switch {
	case op.In != nil:
		out["requestBody"] = object{"required": !op.Loose, "content": jsonOf(op.In, s)}
	case op.Raw == "in":
		out["requestBody"] = object{"required": true, "content": bytes}
	}
	answer := object{"description": http.StatusText(op.Status)}
	switch {
	case op.Out != nil:
		answer["content"] = jsonOf(op.Out, s)
	case op.Raw == "out":
		answer["content"] = bytes
	}
	out["responses"] = object{
		strconv.Itoa(op.Status): answer, "default": object{"$ref": "#/components/responses/Problem"},
	}
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

func jsonOf(v any, s schemas) object {
	return object{"application/json": object{"schema": s.of(reflect.TypeOf(v))}}
}

// schemas are those of named structs, by name.
type schemas map[string]any

func (s schemas) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[time.Duration]():
		return object{"type": "integer", "format": "int64", "description": "nanoseconds"}
	case reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	}
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		if t.Elem().Kind() == reflect.Interface {
			return object{"type": "object"}
		}
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Struct:
		return s.structure(t)
	default:
		return object{"type": "integer"}
	}
}

func (s schemas) structure(t reflect.Type) object {
	if _, ok := s[t.Name()]; !ok {
		s[t.Name()] = object{} // ends recursion
		properties := object{}
		s.fields(t, properties)
		s[t.Name()] = object{"type": "object", "properties": properties}
	}
	return object{"$ref": "#/components/schemas/" + t.Name()}
}

// fields flattens embedded structs, as encoding/json does.
func (s schemas) fields(t reflect.Type, properties object) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			s.fields(field.Type, properties)
		case name == "-" || !field.IsExported():
		default:
			if name == "" {
				name = field.Name
			}
			properties[name] = s.of(field.Type)
		}
	}
}
