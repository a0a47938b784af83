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

const about = "Durations are nanoseconds, bytes in JSON are base64. Errors are Problem bodies. " +
	"With tty, stderr comes with stdout; ttyStderr keeps it apart, but not on a foreign Nomad cluster, where the receipt's error says so. " +
	"A receipt's userCpu and systemCpu are of the whole tree of processes; on cgroup v1, and without control groups, an execution " +
	"without limits.cpu counts the command and the children that it waited for."

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
		about, Problem{}, append(all, more...))
}
