package native

import (
	"net/http"

	"drover"
	"drover/internal/httpapi"
)

// operation is a route and what the OpenAPI document says of it.
type operation struct {
	httpapi.Route
	summary string
	query   []param
	in, out any    // values of the bodies' types; nil: none
	raw     string // a body that is not JSON: "in", "out", "websocket"
	status  int
}

type param struct{ name, kind, about string }

// Parameters that several routes have.
var (
	pathParam       = param{"path", "string", "of the file; relative ones start at the runner's working directory"}
	privilegedParam = param{"privileged", "boolean", "act as the runner's root"}
	modeParam       = param{"mode", "string", "permission bits in octal; default 0744"}
	ownerParam      = param{"owner", "string", "name or uid[:gid]; default root"}
	waitParam       = param{"wait", "string", `how long to wait for the end, as in "30s"`}
	fillParam       = param{"wait", "string", `how long to wait until the pool is full or a runner failed, as in "30s"`}
	attachParams    = []param{
		{"stdout", "integer", "byte offset to begin at"},
		{"stderr", "integer", "byte offset to begin at"},
		{"mode", "string", `"binary" (default) or "text"`},
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
	ok, created, empty := http.StatusOK, http.StatusCreated, http.StatusNoContent
	return []operation{
		{route{Pattern: "GET /v1/environments", Handle: f.listEnvironments}, "List environments", nil, nil, []drover.Environment{}, "", ok},
		{route{Pattern: "GET /v1/environment/{environment}", Handle: f.getEnvironment}, "Read an environment", nil, nil, drover.Environment{}, "", ok},
		{route{Pattern: "PUT /v1/environment/{environment}", Handle: f.putEnvironment}, "Create or replace an environment; with wait it is answered when the pool is full, or with 202", []param{fillParam}, drover.Environment{}, drover.Environment{}, "", ok},
		{route{Pattern: "DELETE /v1/environment/{environment}", Handle: f.deleteEnvironment}, "Delete an environment and its runners", nil, nil, nil, "", empty},
		{route{Pattern: "GET /v1/environment/{environment}/pool", Handle: f.pool}, "How the pool of warm runners stands", []param{fillParam}, nil, drover.PoolStatus{}, "", ok},

		{route{Pattern: "GET /v1/runners", Handle: f.listRunners}, "List warm and claimed runners", []param{{"environment", "string", "only of this one"}, {"label", "string", "name=value; only those that have it; may be repeated"}}, nil, []drover.Runner{}, "", ok},
		{route{Pattern: "POST /v1/runners", Handle: f.claim, MaxBody: f.MaxFiles}, "Claim a runner", nil, ClaimBody{}, drover.Runner{}, "", created},
		{route{Pattern: "GET /v1/runner/{runner}", Handle: f.getRunner}, "Read a claimed runner", nil, nil, drover.Runner{}, "", ok},
		{route{Pattern: "PATCH /v1/runner/{runner}", Handle: f.extend}, "Set a runner's idle timeout, from now on", nil, ExtendBody{}, drover.Runner{}, "", ok},
		{route{Pattern: "DELETE /v1/runner/{runner}", Handle: f.release}, "Release a runner", nil, nil, nil, "", empty},

		{route{Pattern: "GET /v1/runner/{runner}/files", Handle: f.listFiles}, "List files", []param{pathParam, {"recursive", "boolean", "with everything below"}, privilegedParam}, nil, []File{}, "", ok},
		{route{Pattern: "POST /v1/runner/{runner}/files", Handle: f.changeFiles, MaxBody: f.MaxFiles}, "Write, make and delete files, in order", nil, []drover.FileChange{}, nil, "", empty},
		{route{Pattern: "DELETE /v1/runner/{runner}/files", Handle: f.deleteFile}, "Delete a file or directory", []param{pathParam}, nil, nil, "", empty},
		{route{Pattern: "GET /v1/runner/{runner}/file", Handle: f.readFile, Stream: true}, "Read a file, with ranges", []param{pathParam, privilegedParam}, nil, nil, "out", ok},
		{route{Pattern: "PUT /v1/runner/{runner}/file", Handle: f.writeFile, MaxBody: -1}, "Write a file from the body, atomically", []param{pathParam, modeParam, ownerParam}, nil, nil, "in", empty},
		{route{Pattern: "GET /v1/runner/{runner}/archive", Handle: f.readArchive, Stream: true}, "Read a directory as tar", []param{pathParam, privilegedParam}, nil, nil, "out", ok},
		{route{Pattern: "PUT /v1/runner/{runner}/archive", Handle: f.writeArchive, MaxBody: -1}, "Unpack a tar into a directory", []param{pathParam, privilegedParam}, nil, nil, "in", empty},

		{route{Pattern: "GET /v1/runner/{runner}/executions", Handle: f.listExecutions}, "List a runner's executions", nil, nil, []drover.Execution{}, "", ok},
		{route{Pattern: "POST /v1/runner/{runner}/executions", Handle: f.createExecution, MaxBody: f.MaxFiles}, "Start an execution", nil, drover.ExecutionRequest{}, drover.Execution{}, "", created},
		{route{Pattern: "GET /v1/runner/{runner}/execute", Handle: f.execute, Stream: true}, "Start an execution and attach to it (websocket); the ExecutionRequest is the first message, or the header Drover-Execution (JSON in base64), which spares a round trip: then the handshake is answered when the command was started, and the answer has the header too", attachParams[2:], nil, nil, "websocket", http.StatusSwitchingProtocols},
		{route{Pattern: "GET /v1/execution/{execution}", Handle: f.getExecution}, "Read an execution, or wait for its end", []param{waitParam}, nil, drover.Execution{}, "", ok},
		{route{Pattern: "DELETE /v1/execution/{execution}", Handle: f.killExecution}, "Kill an execution", nil, nil, nil, "", empty},
		{route{Pattern: "GET /v1/execution/{execution}/attach", Handle: f.attach, Stream: true}, "Attach to an execution (websocket)", attachParams, nil, nil, "websocket", http.StatusSwitchingProtocols},
		{route{Pattern: "GET /v1/execution/{execution}/output", Handle: f.output, Stream: true}, "Read one output stream until the end", []param{{"stream", "string", `"stdout" (default) or "stderr"`}, {"offset", "integer", "byte to begin at"}}, nil, nil, "out", ok},
		{route{Pattern: "POST /v1/execution/{execution}/stdin", Handle: f.stdin, MaxBody: -1}, "Send stdin from the body", []param{{"close", "boolean", "end stdin after it"}}, nil, nil, "in", empty},
		{route{Pattern: "POST /v1/execution/{execution}/signal", Handle: f.signal}, "Send a signal", nil, SignalBody{}, nil, "", empty},
		{route{Pattern: "POST /v1/execution/{execution}/resize", Handle: f.resize}, "Set the terminal's size", nil, drover.WindowSize{}, nil, "", empty},

		{route{Pattern: "POST /v1/run", Handle: f.run, MaxBody: f.MaxFiles}, "Claim a runner, run a command with files, release the runner", nil, drover.RunRequest{}, drover.RunResult{}, "", ok},
		{route{Pattern: "GET /v1/openapi.json", Handle: f.openAPI, Open: true}, "This document", nil, nil, map[string]any{}, "", ok},
	}
}
