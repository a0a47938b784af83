package native

import (
	"embed"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"drover"
)

//go:embed openapi.json
var document embed.FS

// openAPI serves the committed document; a test holds it against the table.
func (f *Face) openAPI(w http.ResponseWriter, _ *http.Request) error {
	text, err := document.ReadFile("openapi.json")
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // fails only when the client is gone
	return nil
}

type object = map[string]any

// Document renders the OpenAPI description of all operations.
func (f *Face) Document() map[string]any {
	s := schemas{}
	paths := object{}
	for _, op := range f.operations() {
		method, path, _ := strings.Cut(op.Pattern, " ")
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(method)] = describe(op, s)
	}
	problem := s.of(reflect.TypeFor[Problem]())
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Drover: environments, runners, executions", "version": "1",
			"description": "Durations are nanoseconds, bytes in JSON are base64. Errors are Problem bodies.",
		},
		"paths": paths,
		"components": object{
			"schemas": s,
			"responses": object{"Problem": object{
				"description": "what went wrong", "content": object{"application/json": object{"schema": problem}},
			}},
			"securitySchemes": object{"token": object{"type": "apiKey", "in": "header", "name": "X-Drover-Token"}},
		},
		"security": []any{object{"token": []any{}}},
	}
}

var pathValue = regexp.MustCompile(`\{(\w+)\}`)

func describe(op operation, s schemas) object {
	out := object{"summary": op.summary, "operationId": operationID(op)}
	var params []any
	for _, m := range pathValue.FindAllStringSubmatch(op.Pattern, -1) {
		params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range op.query {
		params = append(params, object{
			"name": p.name, "in": "query", "description": p.about, "schema": object{"type": p.kind},
		})
	}
	if params != nil {
		out["parameters"] = params
	}
	bytes := object{"application/octet-stream": object{"schema": object{"type": "string", "format": "binary"}}}
	switch {
	case op.in != nil:
		out["requestBody"] = object{"required": true, "content": jsonOf(op.in, s)}
	case op.raw == "in":
		out["requestBody"] = object{"required": true, "content": bytes}
	}
	answer := object{"description": http.StatusText(op.status)}
	switch {
	case op.out != nil:
		answer["content"] = jsonOf(op.out, s)
	case op.raw == "out":
		answer["content"] = bytes
	}
	out["responses"] = object{
		strconv.Itoa(op.status): answer, "default": object{"$ref": "#/components/responses/Problem"},
	}
	if op.Open {
		out["security"] = []any{}
	}
	return out
}

// operationID makes "getExecutionOutput" of "GET /v1/execution/{execution}/output".
func operationID(op operation) string {
	method, path, _ := strings.Cut(op.Pattern, " ")
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
	case reflect.TypeFor[drover.Cause](), reflect.TypeFor[drover.RunnerState]():
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
