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
	claims      = httpapi.Claim(unlessOnce(claimedKey))
)

// What routes need.
var (
	// Of lists, in the namespace that the query asks for.
	lists = httpapi.InNamespace(policy.ReadRunner)
	// Of claims, in that of the query, too: the body was not read. The keys of requests are their callers'.
	claimsRunner = httpapi.InNamespaceOf(httpapi.AskedNamespace, policy.ClaimRunner).KnowingWith(keyHeader, otherKeyHeader)
	runs         = httpapi.InNamespaceOf(httpapi.AskedNamespace, policy.ClaimRunner, policy.Execute).Knowing()
	// Of an environment, in its own namespace.
	readsEnvironment = httpapi.InNamespaceOf(ofEnvironment, policy.ReadRunner)
	environments     = httpapi.InNamespaceOf(ofEnvironment, policy.WriteEnvironment)
	// Of a runner, in its own namespace, which its id tells.
	reads       = httpapi.OfRunner(policy.ReadRunner)
	keeps       = httpapi.OfRunner(policy.ClaimRunner)
	executes    = httpapi.OfRunner(policy.Execute)
	readsFiles  = httpapi.OfRunner(policy.ReadFiles)
	writesFiles = httpapi.OfRunner(policy.WriteFiles)
	// Of an execution, in that of its runner, which the handler finds out: see allowed.
	follows  = httpapi.OfObject(policy.ReadRunner)
	controls = httpapi.OfObject(policy.Execute)
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
	namespaceParam  = param{Name: "namespace", Kind: "string", About: "of the environment; default \"default\""}
	namespacesParam = param{Name: "namespace", Kind: "string", About: "default \"default\"; * is all"}
	pathParam       = param{Name: "path", Kind: "string", About: "of the file; relative ones start at the runner's working directory"}
	path64Param     = param{
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
		observeParam,
	}
	outputParameters = []param{
		{Name: "stream", Kind: "string", About: "default stdout", Values: []string{"stdout", "stderr"}},
		{Name: "offset", Kind: "integer", About: "byte to begin at"},
		observeParam,
	}
	observeParam = param{
		Name: "observe", Kind: "boolean",
		About: "only read along: the program never waits for this reader, who misses what it is too slow for, and does not live on for it",
	}
	runnersParams = []param{
		namespacesParam,
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
		f.listOperations(), f.receiptOperations(), f.timelineOperations(), f.historyOperations(), f.serverOperations(), f.auditOperations(),
		f.attentionOperations(), f.topologyOperations(), f.usageOperations(), f.drainOperations(), f.rightsOperations(),
		[]operation{described})
}
