package native

import (
	"embed"
	"net/http"
	"reflect"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi/openapi"
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

// about is the description at the top of the document: the rules that hold for all operations.
const about = "Durations are nanoseconds, in requests also texts such as 1m30s; bytes in JSON are base64. " +
	"Fields that are not described here are refused in requests, " +
	"but may come in answers. In those of the fleet null stands for an empty list, map or object. Errors are Problem bodies. " +
	"With tty, stderr comes with stdout; ttyStderr keeps it apart, but not on a foreign Nomad cluster, where the receipt's error says so. " +
	"A receipt's userCpu and systemCpu are of the whole tree of processes; on cgroup v1, and without control groups, an execution " +
	"without limits.cpu leaves out those that nobody waited for and that left the command's session while others ran beside it."

// required are the fields that requests need.
var required = map[string][]string{
	"ClaimBody":   {"environment"},
	"Environment": {"image"},
	"ExtendBody":  {"idleTimeout"},
	"FileChange":  {"path"},
	"RunRequest":  {"environment"},
	"SignalBody":  {"signal"},
	"WindowSize":  {"rows", "cols"},
}

// values are those of closed sets.
var values = map[reflect.Type][]string{
	reflect.TypeFor[execution.Cause](): texts(
		execution.CauseExited, execution.CauseSignalled, execution.CauseTimeout, execution.CauseOOM, execution.CauseOutputLimit,
		execution.CauseCPULimit, execution.CauseKilled, execution.CauseRunnerGone, execution.CauseStartFailed),
	reflect.TypeFor[execution.RunnerState](): texts(
		execution.RunnerRequested, execution.RunnerWarming, execution.RunnerWarm, execution.RunnerClaimed, execution.RunnerBusy,
		execution.RunnerDraining, execution.RunnerDestroyed),
}

// texts makes the constants of one closed set into plain strings, in the same order.
func texts[T ~string](values ...T) (list []string) {
	for _, v := range values {
		list = append(list, string(v))
	}
	return list
}

// Document renders the OpenAPI description of all operations, and of those of other faces.
func (f *Face) Document(more ...openapi.Operation) map[string]any {
	var all []openapi.Operation
	for _, op := range f.operations() {
		status := op.statuses()
		all = append(all, openapi.Operation{
			Pattern: op.Pattern, Summary: op.summary, In: op.in, Out: op.out, Raw: op.raw, Query: op.query,
			Status: status[0], Also: status[1:], Open: op.Need.IsOpen(),
		})
	}
	return openapi.Document(openapi.Info{
		Title: "Drover: environments, runners, executions, the fleet", About: about, Problem: Problem{},
		Required: required, Values: values,
	}, append(all, more...))
}
