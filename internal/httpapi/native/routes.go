package native

import (
	"net/http"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/openapi"
)

// operation is a route and what the OpenAPI document says of it.
type operation struct {
	httpapi.Route
	summary string
	query   []param
	in, out any    // values of the bodies' types; nil: none
	raw     string // as in openapi.Operation
	status  []int  // when all is well
}

type param = openapi.Param

// Parameters that several routes have.
var (
	pathParam       = param{Name: "path", Kind: "string", About: "of the file; relative ones start at the runner's working directory"}
	path64Param     = param{Name: "pathBase64", Kind: "string", About: "the path's bytes in base64 of URLs, instead of path: for those that are not UTF-8"}
	privilegedParam = param{Name: "privileged", Kind: "boolean", About: "act as the runner's root"}
	modeParam       = param{Name: "mode", Kind: "string", About: "permission bits in octal; default 0744"}
	ownerParam      = param{Name: "owner", Kind: "string", About: "name or uid[:gid]; default root"}
	waitParam       = param{Name: "wait", Kind: "string", About: `how long to wait for the end, as in "30s"`}
	fillParam       = param{Name: "wait", Kind: "string", About: `how long to wait until the pool is full or a runner failed, as in "30s"`}
	rangeParam      = param{Name: "Range", Kind: "string", About: `the part wanted, as in "bytes=0-99"`, Header: true}
	messagesParam   = param{Name: "mode", Kind: "string", About: "how output comes; default binary", Values: []string{"binary", "text"}}
	earlyParam      = param{Name: execution.RequestHeader, Kind: "string", About: "the ExecutionRequest, JSON in base64, instead of the first message", Header: true}
	attachParams    = []param{
		{Name: "stdout", Kind: "integer", About: "byte offset to begin at"},
		{Name: "stderr", Kind: "integer", About: "byte offset to begin at"},
		messagesParam,
	}
	outputParameters = []param{
		{Name: "stream", Kind: "string", About: "default stdout", Values: []string{"stdout", "stderr"}},
		{Name: "offset", Kind: "integer", About: "byte to begin at"},
	}
	runnersParams = []param{
		{Name: "environment", Kind: "string", About: "only of this one"},
		{Name: "label", Kind: "strings", About: "name=value; only those that have it"},
	}
)

// Routes serves httpapi.Face.
func (f *Face) Routes() []httpapi.Route {
	ops := f.operations()
	routes := make([]httpapi.Route, len(ops))
	for i, op := range ops {
		routes[i] = op.Route
	}
	return routes
}

type route = httpapi.Route

// operations is the native API's table of contents.
func (f *Face) operations() []operation {
	type is = []int
	ok, created, empty, upgraded := is{http.StatusOK}, is{http.StatusCreated}, is{http.StatusNoContent}, is{http.StatusSwitchingProtocols}
	put, download := is{http.StatusOK, http.StatusCreated, http.StatusAccepted}, is{http.StatusOK, http.StatusPartialContent, http.StatusNotModified}
	return []operation{
		{route{Pattern: "GET /v1/environments", Handle: f.listEnvironments}, "List environments", nil, nil, []execution.Environment{}, "", ok},
		{route{Pattern: "GET /v1/environment/{environment}", Handle: f.getEnvironment}, "Read an environment", nil, nil, execution.Environment{}, "", ok},
		{route{Pattern: "PUT /v1/environment/{environment}", Handle: f.putEnvironment}, "Create (201) or replace (200) an environment; with wait it is answered when the pool is full, or with 202, and the reason in the header Drover-Pool-Error", []param{fillParam}, execution.Environment{}, execution.Environment{}, "", put},
		{route{Pattern: "DELETE /v1/environment/{environment}", Handle: f.deleteEnvironment}, "Delete an environment and its runners", nil, nil, nil, "", empty},
		{route{Pattern: "GET /v1/environment/{environment}/pool", Handle: f.pool}, "How the pool of warm runners stands", []param{fillParam}, nil, execution.PoolStatus{}, "", ok},

		{route{Pattern: "GET /v1/runners", Handle: f.listRunners}, "List warm and claimed runners", runnersParams, nil, []execution.Runner{}, "", ok},
		{route{Pattern: "POST /v1/runners", Handle: f.claim, MaxBody: f.MaxFiles}, "Claim a runner", nil, ClaimBody{}, execution.Runner{}, "", created},
		{route{Pattern: "GET /v1/runner/{runner}", Handle: f.getRunner}, "Read a claimed runner", nil, nil, execution.Runner{}, "", ok},
		{route{Pattern: "PATCH /v1/runner/{runner}", Handle: f.extend}, "Set a runner's idle timeout, from now on", nil, ExtendBody{}, execution.Runner{}, "", ok},
		{route{Pattern: "DELETE /v1/runner/{runner}", Handle: f.release}, "Release a runner", nil, nil, nil, "", empty},

		{route{Pattern: "GET /v1/runner/{runner}/files", Handle: f.listFiles}, "List files", []param{pathParam, path64Param, {Name: "recursive", Kind: "boolean", About: "with everything below"}, privilegedParam}, nil, []File{}, "", ok},
		{route{Pattern: "POST /v1/runner/{runner}/files", Handle: f.changeFiles, MaxBody: f.MaxFiles}, "Write, make and delete files, in order", nil, []execution.FileChange{}, nil, "", empty},
		{route{Pattern: "DELETE /v1/runner/{runner}/files", Handle: f.deleteFile}, "Delete a file or directory", []param{pathParam, path64Param}, nil, nil, "", empty},
		{route{Pattern: "GET /v1/runner/{runner}/file", Handle: f.readFile, Stream: true}, "Read a file, with ranges", []param{pathParam, path64Param, privilegedParam, rangeParam}, nil, nil, "out", download},
		{route{Pattern: "PUT /v1/runner/{runner}/file", Handle: f.writeFile, MaxBody: -1}, "Write a file from the body, atomically", []param{pathParam, path64Param, modeParam, ownerParam}, nil, nil, "in", empty},
		{route{Pattern: "GET /v1/runner/{runner}/archive", Handle: f.readArchive, Stream: true}, "Read a directory as tar", []param{pathParam, path64Param, privilegedParam}, nil, nil, "tar out", ok},
		{route{Pattern: "PUT /v1/runner/{runner}/archive", Handle: f.writeArchive, MaxBody: -1}, "Unpack a tar into a directory", []param{pathParam, path64Param, privilegedParam}, nil, nil, "tar in", empty},

		{route{Pattern: "GET /v1/runner/{runner}/executions", Handle: f.listExecutions}, "List a runner's executions", nil, nil, []execution.Execution{}, "", ok},
		{route{Pattern: "POST /v1/runner/{runner}/executions", Handle: f.createExecution, MaxBody: f.MaxFiles}, "Start an execution", nil, execution.Request{}, execution.Execution{}, "", created},
		{route{Pattern: "GET /v1/runner/{runner}/execute", Handle: f.execute, Stream: true}, "Start an execution and attach to it (websocket); the ExecutionRequest is the first message, or the header Drover-Execution (JSON in base64), which spares a round trip: then the handshake is answered when the command was started, and the answer has the header too", []param{messagesParam, earlyParam}, nil, nil, "websocket", upgraded},
		{route{Pattern: "GET /v1/execution/{execution}", Handle: f.getExecution}, "Read an execution, or wait for its end", []param{waitParam}, nil, execution.Execution{}, "", ok},
		{route{Pattern: "DELETE /v1/execution/{execution}", Handle: f.killExecution}, "Kill an execution", nil, nil, nil, "", empty},
		{route{Pattern: "GET /v1/execution/{execution}/attach", Handle: f.attach, Stream: true}, "Attach to an execution (websocket)", attachParams, nil, nil, "websocket", upgraded},
		{route{Pattern: "GET /v1/execution/{execution}/output", Handle: f.output, Stream: true}, "Read one output stream until the end", outputParameters, nil, nil, "out", ok},
		{route{Pattern: "POST /v1/execution/{execution}/stdin", Handle: f.stdin, MaxBody: -1}, "Send stdin from the body", []param{{Name: "close", Kind: "boolean", About: "end stdin after it"}}, nil, nil, "in", empty},
		{route{Pattern: "POST /v1/execution/{execution}/signal", Handle: f.signal}, "Send a signal", nil, SignalBody{}, nil, "", empty},
		{route{Pattern: "POST /v1/execution/{execution}/resize", Handle: f.resize}, "Set the terminal's size", nil, execution.WindowSize{}, nil, "", empty},

		{route{Pattern: "POST /v1/run", Handle: f.run, MaxBody: f.MaxFiles}, "Claim a runner, run a command with files, release the runner", nil, execution.RunRequest{}, execution.RunResult{}, "", ok},
		{route{Pattern: "GET /v1/openapi.json", Handle: f.openAPI, Open: true}, "This document", nil, nil, map[string]any{}, "", ok},
	}
}
