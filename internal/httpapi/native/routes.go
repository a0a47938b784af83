package native

import (
	"net/http"
	"slices"
	"strings"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/openapi"
	"github.com/drover-project/drover/internal/policy"
)

// operation is a route and what the OpenAPI document says of it.
type operation struct {
	httpapi.Route
	summary string
	query   []param
	in, out any    // values of the bodies' types; nil: none
	raw     string // as in openapi.Operation
	status  []int  // when all is well; nil: 200, or 204 of an answer without a body
}

// statuses lists how the operation answers when all is well, the usual one first.
func (o operation) statuses() []int {
	switch {
	case o.status != nil:
		return o.status
	case o.out == nil && !strings.HasSuffix(o.raw, "out"):
		return []int{http.StatusNoContent}
	}
	return []int{http.StatusOK}
}

// param is a parameter of the query or, with Header, a header of the request.
type param = openapi.Param

// Where routes are answered that depend on what they name.
var (
	onRunner    = httpapi.Runner(httpapi.PathKey("runner"))
	ofExecution = httpapi.Execution(httpapi.PathKey("execution"))
	claims      = httpapi.Claim(unlessOnce(httpapi.BodyKey("environment")))
)

// What routes need: all is in namespace default.
var (
	reads        = httpapi.InDefault(policy.ReadRunner)
	claimsRunner = httpapi.InDefault(policy.ClaimRunner)
	executes     = httpapi.InDefault(policy.Execute)
	runs         = httpapi.InDefault(policy.ClaimRunner, policy.Execute)
	readsFiles   = httpapi.InDefault(policy.ReadFiles)
	writesFiles  = httpapi.InDefault(policy.WriteFiles)
	environments = httpapi.InDefault(policy.WriteEnvironment)

	// Keys are their callers'.
	claimsOnce   = claimsRunner.KnowingWith(keyHeader, otherKeyHeader)
	executesOnce = executes.KnowingWith(keyHeader, otherKeyHeader)
	runsOnce     = runs.KnowingWith(keyHeader, otherKeyHeader)
)

// unlessOnce leaves requests with an idempotency key to the leader: only one server can tell a repetition.
func unlessOnce(k httpapi.Key) httpapi.Key {
	return func(r *http.Request) (string, error) {
		if keyOf(r) != "" {
			return "", nil
		}
		return k(r)
	}
}

// Parameters that several routes have.
var (
	pathParam   = param{Name: "path", Kind: "string", About: "of the file; relative ones start at the runner's working directory"}
	path64Param = param{
		Name: "pathBase64", Kind: "string",
		About: "the path's bytes in base64 of URLs, instead of path: for those that are not UTF-8",
	}
	privilegedParam = param{Name: "privileged", Kind: "boolean", About: "act as the runner's root"}
	modeParam       = param{Name: "mode", Kind: "string", About: "permission bits in octal; default 0744"}
	ownerParam      = param{Name: "owner", Kind: "string", About: "name or uid[:gid]; default root"}
	waitParam       = param{Name: "wait", Kind: "string", About: `how long to wait for the end, as in "30s"`}
	fillParam       = param{Name: "wait", Kind: "string", About: `how long to wait until the pool is full or a runner failed, as in "30s"`}
	rangeParam      = param{Name: "Range", Kind: "string", About: `the part wanted, as in "bytes=0-99"`, Header: true}
	keyParam        = param{
		Name: keyHeader, Kind: "string", Header: true,
		About: "a text of the client's for this request: a repetition with the same key and body is answered as the first was (409 with another)",
	}
	messagesParam = param{Name: "mode", Kind: "string", About: "how output comes; default binary", Values: []string{"binary", "text"}}
	stdinParam    = param{
		Name: "stdin", Kind: "string", Values: []string{resumeStdin},
		About: "the client counts its stdin, and goes on where the first message says",
	}
	earlyParam = param{
		Name: execution.RequestHeader, Kind: "string", Header: true,
		About: "the ExecutionRequest, JSON in base64, instead of the first message",
	}
	attachParams = []param{
		{Name: "stdout", Kind: "integer", About: "byte offset to begin at"},
		{Name: "stderr", Kind: "integer", About: "byte offset to begin at"},
		messagesParam,
		stdinParam,
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

// operations is the native API's table of contents, in the order of its document. Each part of it stands beside its
// handlers.
func (f *Face) operations() []operation {
	document := httpapi.Level(policy.Agent, policy.Read).OpenAs(acl.OpenDocument)
	described := operation{
		Route:   httpapi.Route{Pattern: "GET /v1/openapi.json", Where: httpapi.Here, Need: document, Handle: f.openAPI},
		summary: "This document",
		out:     map[string]any{},
	}
	return slices.Concat(f.environmentOperations(), f.runnerOperations(), f.fileOperations(), f.executionOperations(),
		f.serverOperations(), f.rightsOperations(), []operation{described})
}
