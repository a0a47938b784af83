package rendering

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/evaluator"
	"github.com/drover-project/drover/internal/exchange"
)

// Max bounds a template's source and its result, in bytes.
const Max = 4 << 20

// MaxResult bounds what Func returns: the text, and what was asked for it.
const MaxResult = Max + 1<<20

// Name is what Func is called among the evaluator's functions.
const Name = "template"

// Request is a template with what it may ask for.
type Request struct {
	Source            string
	Left, Right       string // delimiters; "" = {{ and }}
	Strict            bool   // a missing key of a map is an error
	Env               map[string]string
	Namespace, Region string                       // of the task
	Known             map[exchange.Question]string // answers; "" = there is no such thing
	Deny              []string                     // functions that fail, as patterns of package path
}

// Result is what came of it.
type Result struct {
	Used    []Asked // all that it asked
	Missing []Asked // what has no answer yet, or none that is enough. While there is any the text is not complete
	Text    []byte
}

// head is what is told of a request and of a result beside texts.
type (
	head struct {
		Left, Right, Namespace, Region string
		Strict                         bool
		Deny                           []string
		Env                            map[string]string
		Questions                      []exchange.Question // of which the answers follow
	}
	foot struct{ Used, Missing []Asked }
)

// Pack encodes the request for Func.
func (r Request) Pack() []byte {
	h := head{Left: r.Left, Right: r.Right, Namespace: r.Namespace, Region: r.Region, Strict: r.Strict, Deny: r.Deny}
	texts := []string{"", r.Source}
	for q, data := range r.Known {
		h.Questions = append(h.Questions, q)
		texts = append(texts, data)
	}
	for k, v := range r.Env { // JSON cannot carry all of their bytes
		texts = append(texts, k, v)
	}
	b, _ := json.Marshal(h) // it has nothing that cannot be encoded
	texts[0] = string(b)
	return evaluator.Pack(texts...)
}

// Func renders a packed request, and packs the result; it is an evaluator.Func.
func Func(request []byte) ([]byte, error) {
	texts, err := evaluator.Unpack(request, 2)
	h := head{}
	if err == nil {
		err = json.Unmarshal([]byte(texts[0]), &h)
	}
	if err == nil && len(texts) < 2+len(h.Questions) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "reading the template's request: %w", err)
	}
	r := Request{
		Source: texts[1], Left: h.Left, Right: h.Right, Strict: h.Strict, Namespace: h.Namespace, Region: h.Region, Deny: h.Deny,
		Known: map[exchange.Question]string{}, Env: map[string]string{},
	}
	for i, q := range h.Questions {
		r.Known[q] = texts[2+i]
	}
	for rest := texts[2+len(h.Questions):]; len(rest) >= 2; rest = rest[2:] {
		r.Env[rest[0]] = rest[1]
	}
	out, err := Render(r)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(foot{out.Used, out.Missing})
	return evaluator.Pack(string(b), string(out.Text)), err
}

// Unpack decodes what Func returned.
func Unpack(result []byte) (out Result, err error) {
	texts, err := evaluator.Unpack(result, 2)
	f := foot{}
	if err == nil {
		err = json.Unmarshal([]byte(texts[0]), &f)
	}
	if err != nil {
		return out, drover.Errorf(drover.Internal, "reading the template's result: %w", err)
	}
	return Result{f.Used, f.Missing, []byte(texts[1])}, nil
}

// Render renders the template. Errors: Invalid, with line and column; TooLarge. An error that comes from what is missing is none yet.
func Render(r Request) (Result, error) {
	b := &budget{left: maxText}
	asks := &asking{namespace: r.Namespace, region: r.Region, known: r.Known, seen: map[Asked]bool{}}
	parsed := template.New("template").Delims(r.Left, r.Right).Option("missingkey=zero")
	if r.Strict {
		parsed = parsed.Option("missingkey=error")
	}
	parsed = parsed.Funcs(asks.functions()).Funcs(functions(r, parsed, b)).Funcs(template.FuncMap{
		tickName: ticker(), methodName: call(r.Strict),
	})
	parsed, err := parsed.Parse(r.Source)
	if err != nil {
		return Result{}, drover.Errorf(drover.Invalid, "parsing: %w", err)
	}
	withMethods(parsed)
	if err := bound(parsed); err != nil {
		return Result{}, drover.Errorf(drover.Internal, "bounding: %w", err)
	}
	out := &limited{left: Max}
	err = parsed.Execute(out, nil)
	result := Result{asks.used, asks.missing, out.Bytes()}
	if err != nil && (len(asks.missing) == 0 || drover.CodeOf(err) == drover.TooLarge) {
		return Result{}, asks.renderingError(err)
	}
	return result, nil
}

// renderingError keeps the code of a bound that was met: text/template wraps what its functions return. Items of variables are not told.
func (a *asking) renderingError(err error) error {
	code, text := drover.Invalid, err.Error()
	if drover.CodeOf(err) == drover.TooLarge {
		code = drover.TooLarge
	}
	slices.SortFunc(a.hidden, func(x, y string) int { return len(y) - len(x) })
	for _, value := range a.hidden {
		if value != "" {
			text = strings.ReplaceAll(text, value, "[redacted]")
		}
	}
	return drover.Errorf(code, "rendering: %s", text)
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
