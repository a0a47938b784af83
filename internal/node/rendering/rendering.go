package rendering

import (
	"bytes"
	"fmt"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/evaluator"
)

// Max bounds a template's source and its result, in bytes.
const Max = 4 << 20

// Name is what Func is called among the evaluator's functions.
const Name = "template"

// Request is a template with what it may ask for.
type Request struct {
	Source      string
	Left, Right string // delimiters; "" = {{ and }}
	Strict      bool   // a missing key of a map is an error
	Env         map[string]string
}

// Pack encodes the request for Func.
func (r Request) Pack() []byte {
	strict := ""
	if r.Strict {
		strict = "strict"
	}
	texts := make([]string, 0, 4+2*len(r.Env))
	texts = append(texts, r.Source, r.Left, r.Right, strict)
	for k, v := range r.Env {
		texts = append(texts, k, v)
	}
	return evaluator.Pack(texts...)
}

// Func renders a packed request; it is an evaluator.Func.
func Func(request []byte) ([]byte, error) {
	texts, err := evaluator.Unpack(request, 4)
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "reading the template's request: %w", err)
	}
	r := Request{Source: texts[0], Left: texts[1], Right: texts[2], Strict: texts[3] != "", Env: make(map[string]string, len(texts)/2)}
	for rest := texts[4:]; len(rest) >= 2; rest = rest[2:] {
		r.Env[rest[0]] = rest[1]
	}
	return Render(r)
}

// Render renders the template. Errors: Invalid, with line and column; TooLarge.
func Render(r Request) ([]byte, error) {
	b := &budget{left: maxText}
	parsed := template.New("template").Delims(r.Left, r.Right).Funcs(functions(r.Env, b)).Funcs(template.FuncMap{tickName: ticker()})
	if r.Strict {
		parsed = parsed.Option("missingkey=error")
	}
	parsed, err := parsed.Parse(r.Source)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "parsing: %w", err)
	}
	if err := bound(parsed); err != nil {
		return nil, drover.Errorf(drover.Internal, "bounding: %w", err)
	}
	out := &limited{left: Max}
	if err := parsed.Execute(out, nil); err != nil {
		return nil, renderingError(err)
	}
	return out.Bytes(), nil
}

// renderingError keeps the code of a bound that was met: text/template wraps what its functions return.
func renderingError(err error) error {
	if drover.CodeOf(err) == drover.TooLarge {
		return drover.Errorf(drover.TooLarge, "rendering: %w", err)
	}
	return drover.Errorf(drover.Invalid, "rendering: %w", err)
}

// limited is a buffer that refuses to grow over its limit.
type limited struct {
	bytes.Buffer
	left int
}

// Write fails once the whole is longer than the limit, which ends the rendering.
func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, drover.Errorf(drover.TooLarge, "the result has more than %d bytes", Max)
	}
	return l.Buffer.Write(p)
}

// unavailable is a function of consul-template that needs a service.
func unavailable(name string) func(...any) (string, error) {
	return func(...any) (string, error) {
		return "", drover.Errorf(drover.NotImplemented, "the template function %q needs a service that this node does not have", name)
	}
}

// mustEnv is consul-template's function for a variable that has to be set. An empty value is enough.
func mustEnv(env map[string]string) func(string) (string, error) {
	return func(k string) (string, error) {
		v, ok := env[k]
		if !ok {
			return "", fmt.Errorf("the environment has no %s", k)
		}
		return v, nil
	}
}
