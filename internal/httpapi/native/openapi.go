package native

import (
	"embed"
	"net/http"

	"drover/internal/httpapi/openapi"
)

//go:embed openapi.json
var document embed.FS

// openAPI serves the committed document; a test holds it against the tables of the faces that are in it.
func (f *Face) openAPI(w http.ResponseWriter, _ *http.Request) error {
	text, err := document.ReadFile("openapi.json")
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // fails only when the client is gone
	return nil
}

// Document renders the OpenAPI description of all operations, and of those of other faces.
func (f *Face) Document(more ...openapi.Operation) map[string]any {
	var all []openapi.Operation
	for _, op := range f.operations() {
		o := openapi.Operation{Pattern: op.Pattern, Summary: op.summary, In: op.in, Out: op.out, Raw: op.raw, Status: op.status, Open: op.Open}
		for _, p := range op.query {
			o.Query = append(o.Query, openapi.Param{Name: p.name, Kind: p.kind, About: p.about})
		}
		all = append(all, o)
	}
	return openapi.Document("Drover: environments, runners, executions, the fleet",
		"Durations are nanoseconds, bytes in JSON are base64. Errors are Problem bodies.", Problem{}, append(all, more...))
}
