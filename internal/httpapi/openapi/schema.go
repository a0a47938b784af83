package openapi

import (
	"encoding"
	"math"
	"path"
	"reflect"
	"strings"
	"time"
)

// schemas are those of named structs.
type schemas struct {
	Info
	named object
	asked bool // what is met now is part of a request
}

// jsonOf is the content of a JSON body whose type is that of v; the value of v does not matter.
func (s *schemas) jsonOf(v any) object {
	return object{"application/json": object{"schema": s.of(reflect.TypeOf(v))}}
}

// of returns the schema of a type as encoding/json writes it. Types with a form of their own come before the switch
// over kinds: a duration is an int64 to reflection. A named struct becomes a reference into the components.
func (s *schemas) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[time.Duration]():
		if s.asked {
			return object{"type": []string{"integer", "string"}, "format": "int64", "description": "nanoseconds, or a text such as \"1m30s\""}
		}
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
		if values := s.Values[t]; values != nil {
			return object{"type": "string", "enum": values}
		}
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Struct:
		return s.structure(t)
	default:
		return integer(t.Kind())
	}
}

// integer says how large it gets: generated clients take what has no format for 32 bits.
func integer(k reflect.Kind) object {
	switch k {
	case reflect.Uint8:
		return object{"type": "integer", "format": "int32", "minimum": 0, "maximum": math.MaxUint8}
	case reflect.Uint16:
		return object{"type": "integer", "format": "int32", "minimum": 0, "maximum": math.MaxUint16}
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "format": "int64", "minimum": 0}
	}
	return object{"type": "integer", "format": "int64"}
}

// structure returns a reference to the schema of a struct, and renders it at the first call. The placeholder is
// entered before the fields are visited, because types may contain themselves. A type that is in both a request and
// an answer is described as in the request.
func (s *schemas) structure(t reflect.Type) object {
	name := schemaName(t)
	if _, ok := s.named[name]; !ok {
		s.named[name] = object{} // ends recursion
		properties := object{}
		always := s.fields(t, properties)
		schema := object{"type": "object", "properties": properties}
		if s.asked {
			always = s.Required[name]
		}
		if len(always) > 0 {
			schema["required"] = always
		}
		s.named[name] = schema
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// fields flattens embedded structs, as encoding/json does, and names those that encoding/json never leaves out and never
// writes as null.
func (s *schemas) fields(t reflect.Type, properties object) (always []string) {
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			always = append(always, s.fields(field.Type, properties)...)
		case name == "-" || !field.IsExported():
		default:
			if name == "" {
				name = field.Name
			}
			properties[name] = s.of(field.Type)
			switch field.Type.Kind() {
			case reflect.Pointer, reflect.Slice, reflect.Map:
			default:
				if !strings.Contains(options, "omit") {
					always = append(always, name)
				}
			}
		}
	}
	return always
}

// schemaName is the type's name in the document, whose schemas share one room. Types of the fleet's and the execution service's
// vocabulary that would say too little alone have their package's name before them.
func schemaName(t reflect.Type) string {
	room, name := path.Base(t.PkgPath()), t.Name()
	switch {
	case strings.Contains(t.PkgPath(), "/internal/"): // a face's own
	case room == "fleet" && name != "Billing" && !strings.HasPrefix(name, "Instance"):
		return "Fleet" + name
	case room == "execution" && (name == "Spec" || name == "Request"):
		return "Execution" + name
	}
	return name
}
