package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/fleet"
	"github.com/drover-project/drover/internal/httpapi/native"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/httpapi/poseidon"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/tenancy"
)

// What the tenant "team" has. Whoever learns of any of it has seen "marked".
const (
	allocID = "a1a1a1a1-0000-4000-8000-000000000001"
	evalID  = "e1e1e1e1-0000-4000-8000-000000000001"
	deplID  = "d1d1d1d1-0000-4000-8000-000000000001"
	nodeID  = "c1c1c1c1-0000-4000-8000-000000000001"
	marked  = "marked"
)

// route is a row of the page.
type route struct{ methods, path, needs, policy string }

// rowsOfThePage reads docs/reference/rights.md, as people do.
func rowsOfThePage(t *testing.T) (rows []route) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/reference/rights.md"))
	require.NoError(t, err)
	for line := range strings.SplitSeq(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || cells[0] == "Methods" {
			continue
		}
		cells = append(cells, "")
		rows = append(rows, route{cells[0], strings.Trim(cells[1], "`"), cells[2], strings.Trim(strings.TrimSuffix(cells[3], "|"), "` ")})
	}
	require.Greater(t, len(rows), 150)
	return rows
}

// plainNeed is the need without what the route shows.
func (r route) plainNeed() string { return strings.TrimSpace(strings.SplitN(r.needs, ";", 2)[0]) }

func (r route) open() bool { return r.plainNeed() == "nothing" }

func (r route) forAll() bool { return r.open() || r.plainNeed() == "anybody" }

// capabilities are those of a need of them, and where they are needed; nil of other needs.
func (r route) capabilities() (names []string, namespace string) {
	for suffix, ns := range map[string]string{
		" in the namespace asked for": "team", " in the object's namespace": "team", " in namespace default": "default",
		" in the namespace of what is named": "team",
	} {
		if list, ok := strings.CutSuffix(r.plainNeed(), suffix); ok {
			return strings.Split(list, " and "), ns
		}
	}
	return nil, ""
}

// target is a request's path and query that is about what the tenant has.
func (r route) target() string {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.path, "/v1/"), "/")
	id := map[string]string{
		"job": "marked", "allocation": allocID, "client": allocID, "evaluation": evalID, "deployment": deplID, "node": nodeID,
		"scaling": "team/marked/g", "service": "s1",
	}[first]
	name := map[string]string{"namespace": "team", "node": "gpu", "agent": "heap", "job": "good", "service": "web"}[first]
	path := strings.NewReplacer("{id}", id, "{id...}", id, "{name}", name, "{runner}", "team~r1", "{environment}", "7", "{execution}", "x1",
		"{pool}", "p", "{instance}", "i", "{word}", "hold").Replace(r.path)
	if strings.HasSuffix(path, "/") {
		path += "x"
	}
	if strings.Contains(r.needs, "in the namespace asked for") || strings.Contains(r.needs, "of what is named") {
		if strings.Contains(path, "?") {
			return path + "&namespace=team"
		}
		return path + "?namespace=team"
	}
	switch {
	case r.path == "/v1/job/{id}/action":
		path += "?action=a&allocID=" + allocID
	case r.path == "/v1/event/stream":
		path += "?topic=Job&namespace=team"
	case strings.HasPrefix(r.path, "/v1/client/fs/"):
		path += "?task=t&type=stdout&path=x&offset=0"
	}
	return path
}

// body is a request's body where a decision depends on it.
func (r route) body() string {
	switch r.path {
	case "/v1/jobs", "/v1/validate/job", "/v1/admission/test", "/v1/job/{id}", "/v1/job/{id}/plan":
		return `{"Job":{"ID":"marked","Namespace":"team"}}`
	case "/v1/job/{id}/scale":
		return `{"Count":1,"Target":{"Namespace":"team","Group":"g"}}`
	case "/v1/volume/host/create", "/v1/volume/host/register":
		return `{"Volume":{"Name":"marked","Namespace":"team"}}`
	case "/v1/node/pools", "/v1/node/pool/{name}":
		return `{"Name":"gpu"}`
	case "/v1/search":
		return `{"Prefix":"mar","Context":"jobs","Namespace":"*"}`
	case "/v1/search/fuzzy":
		return `{"Text":"mark","Context":"jobs","Namespace":"*"}`
	}
	return `{"Signal":"SIGHUP"}`
}

// exactly are the rules that give what the row says and nothing else.
func (r route) exactly() string {
	var rules string
	if names, namespace := r.capabilities(); names != nil {
		rules = fmt.Sprintf("namespace %q { capabilities = [%s] }\n", namespace, quoted(names))
	}
	if part, level, ok := strings.Cut(r.plainNeed(), ":"); ok {
		rules = fmt.Sprintf("%s { policy = %q }\n", part, level)
	}
	if c, ok := strings.CutSuffix(r.plainNeed(), " of operators"); ok {
		rules = fmt.Sprintf("operator { capabilities = [%q] }\n", c)
	}
	if c, ok := strings.CutSuffix(r.plainNeed(), " of the node pool"); ok {
		rules = fmt.Sprintf("node_pool \"gpu\" { capabilities = [%q] }\n", c)
	}
	if strings.Contains(r.needs, "of a pool that the caller may read") {
		rules += "node_pool \"gpu\" { policy = \"read\" }\n"
	}
	return rules
}

func quoted(names []string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(list, ", ")
}

// less are the rules that give all but one of what the row says, and everything else: one text for each of what can be left out.
func (r route) less(t *testing.T) (all []string) {
	parts := map[string]string{"agent": "write", "node": "write", "operator": "write", "quota": "write", "fleet": "write"}
	pools := []string{"read", "write", "delete"}
	rules := func(capabilities []string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "namespace \"*\" { capabilities = [%s] }\n", quoted(capabilities))
		if len(pools) > 0 {
			fmt.Fprintf(&b, "node_pool \"*\" { capabilities = [%s] }\n", quoted(pools))
		}
		for part, level := range parts {
			if level != "" {
				fmt.Fprintf(&b, "%s { policy = %q }\n", part, level)
			}
		}
		return b.String()
	}
	if part, level, ok := strings.Cut(r.plainNeed(), ":"); ok {
		parts[part] = map[string]string{"write": "read", "read": "deny"}[level]
	}
	if strings.HasSuffix(r.plainNeed(), " of operators") {
		parts["operator"] = ""
	}
	if c, ok := strings.CutSuffix(r.plainNeed(), " of the node pool"); ok {
		pools = without(t, pools, c, func(word string) (string, func(*policy.Rules) bool) {
			return fmt.Sprintf("node_pool \"x\" { capabilities = [%q] }", word), func(p *policy.Rules) bool {
				return hasWord(p.NodePools["x"], []policy.PoolCapability{policy.ReadPool, policy.WritePool, policy.DeletePool}, c)
			}
		})
	}
	var words []string
	names, _ := r.capabilities()
	for _, c := range policy.Capabilities() {
		if c != policy.ListJobs || !slices.Contains(names, policy.ListScalingPolicies.String()) { // which it gives beside read-job
			words = append(words, c.String())
		}
	}
	for _, name := range names {
		all = append(all, rules(without(t, words, name, func(word string) (string, func(*policy.Rules) bool) {
			return fmt.Sprintf("namespace \"x\" { capabilities = [%q] }", word), func(p *policy.Rules) bool {
				return hasWord(p.Namespaces["x"].Capabilities, policy.Capabilities(), name)
			}
		})))
	}
	if all == nil {
		all = []string{rules(words)}
	}
	return all
}

// hasWord reports whether the set has the capability of the word.
func hasWord[C interface {
	~uint8
	String() string
}](set policy.Set[C], all []C, word string) bool {
	return slices.ContainsFunc(all, func(c C) bool { return c.String() == word && set.Has(c) })
}

// without are the words of which none has the capability in it, as a policy with each alone shows.
func without(t *testing.T, words []string, capability string, try func(word string) (string, func(*policy.Rules) bool)) (out []string) {
	t.Helper()
	for _, w := range words {
		text, has := try(w)
		p, err := policy.Parse(text)
		require.NoError(t, err, text)
		if !has(p) {
			out = append(out, w)
		}
	}
	require.Less(t, len(out), len(words), capability)
	return out
}

// only knows one token.
type only struct{ caller *rights.Caller }

func (o only) Resolve(acl.Secret) (*rights.Caller, error) { return o.caller, nil }

// holder is who has a token with the rules.
func holder(t *testing.T, rules string) httpapi.Resolver {
	t.Helper()
	caller := &rights.Caller{Token: &acl.Token{AccessorID: "x"}}
	if rules != "" {
		p, err := policy.Parse(rules)
		require.NoError(t, err, rules)
		caller.Rights = rights.Compile(p)
	}
	return only{caller}
}

type seeded struct{ *store.Store }

func (s seeded) Snapshot() answer.Snapshot { return s.Store.Snapshot() }

// tenants is a state with what the tenant has.
func tenants() seeded {
	s := store.New()
	job := &drover.Job{
		ID: marked, Name: marked, Namespace: "team", NodePool: "gpu", Type: drover.JobTypeService, TaskGroups: []*drover.TaskGroup{{
			Name: "g", Scaling: &drover.ScalingPolicy{Min: new(int64(1)), Max: new(int64(5))}, Tasks: []*drover.Task{{Name: "t", Driver: "sandbox"}},
		}},
	}
	job.Canonicalize()
	t := s.Begin(10)
	t.PutNamespace(&tenancy.Namespace{Name: "team", Description: marked})
	t.PutNodePool(&drover.NodePool{Name: "gpu"})
	t.PutNode(&drover.Node{ID: nodeID, Name: "n1", NodePool: "gpu"})
	t.PutJob(job)
	t.PutEvaluation(&drover.Evaluation{ID: evalID, Namespace: "team", JobID: marked, Status: drover.EvalComplete})
	t.PutDeployment(&drover.Deployment{ID: deplID, Namespace: "team", JobID: marked, Status: drover.DeploymentRunning})
	t.PutAllocation(&drover.Allocation{
		ID: allocID, Namespace: "team", EvalID: evalID, Name: marked + ".g[0]", NodeID: nodeID, JobID: marked, Job: job, TaskGroup: "g",
		DeploymentID: deplID, ClientStatus: drover.AllocClientRunning,
	})
	t.Commit()
	return seeded{s}
}

// reply is how a request was answered.
type reply struct {
	status int
	body   string
}

// refused reports whether the caller learned only that, or that there is no such object: what one has that is not there is an empty list.
func (r route) refused(a reply) bool {
	said := strings.Contains(a.body, "Permission denied") || strings.Contains(a.body, "a token is needed")
	return a.status == http.StatusForbidden || a.status == http.StatusUnauthorized || a.status == http.StatusNotFound ||
		a.body == "[]" && strings.Contains(r.needs, "object's namespace") ||
		a.status == http.StatusSwitchingProtocols && said
}

// asks sends the row's request with each method to all faces, behind which is the state and nothing else: who is let in meets 500 at the
// latest.
func (r route) asks(t *testing.T, state answer.State, who httpapi.Resolver, token string) (replies []reply) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	srv := httptest.NewServer(httpapi.Handler(httpapi.Config{Logger: quiet, Clock: clock.Wall{}, Resolver: who},
		nomad.New(nomad.Config{State: state, Clock: clock.Wall{}, ID: id.Random{}, Logger: quiet, Pprof: true, Agent: leaderless{}}),
		native.New(native.Config{}, native.Deps{Executions: executions{}, Clock: clock.Wall{}, Log: quiet}),
		poseidon.New(poseidon.Config{Version: "1"}, poseidon.Deps{Clock: clock.Wall{}, Log: quiet}), &fleet.Face{}))
	defer srv.Close()
	methods := strings.Split(r.methods, ", ")
	if r.methods == "all" {
		methods = []string{"GET", "POST"}
	}
	for _, m := range methods {
		var body io.Reader
		if m != "GET" {
			body = strings.NewReader(r.body())
		}
		q, err := http.NewRequestWithContext(t.Context(), m, srv.URL+r.target(), body)
		require.NoError(t, err)
		if token != "" {
			q.Header.Set("X-Nomad-Token", token)
		}
		if strings.HasSuffix(r.path, "/exec") || strings.HasSuffix(r.path, "/action") { // websockets
			for k, v := range map[string]string{
				"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
			} {
				q.Header.Set(k, v)
			}
		}
		res, err := srv.Client().Do(q)
		require.NoError(t, err, "%s %s", m, r.target())
		text, _ := io.ReadAll(res.Body) // a connection that was cut had begun
		require.NoError(t, res.Body.Close())
		replies = append(replies, reply{res.StatusCode, string(text)})
	}
	return replies
}

// executions has one of the tenant's under each id, and nothing else.
type executions struct{ native.Executions }

func (executions) Info(_ context.Context, id string) (execution.Execution, error) {
	return execution.Execution{ID: id, RunnerID: "team~e-r1"}, nil
}

// leaderless is an agent that knows no leader, and nothing else.
type leaderless struct{ nomad.Agent }

func (leaderless) Leader() string    { return "" }
func (leaderless) LocalNode() string { return "" }

// TestRoutesNeedWhatThePageSays drives every route of every face as six callers, and expects of each what the page says: refusals, and
// nothing of the tenant's to who may not know of it.
func TestRoutesNeedWhatThePageSays(t *testing.T) {
	t.Parallel()
	state := tenants()
	everything := "namespace \"*\" { policy = \"read\" }\nnode_pool \"*\" { policy = \"read\" }\n" +
		"agent { policy = \"read\" }\nnode { policy = \"read\" }\noperator { policy = \"read\" }\nquota { policy = \"read\" }\n"
	for _, row := range rowsOfThePage(t) {
		t.Run(strings.ReplaceAll(row.methods, ", ", ",")+" "+row.path, func(t *testing.T) {
			t.Parallel()
			expect := func(name string, let bool, who httpapi.Resolver, token string) {
				for _, a := range row.asks(t, state, who, token) {
					if !let {
						require.True(t, row.refused(a), "%s: %d %s", name, a.status, a.body)
						require.NotContains(t, a.body, marked, name)
						continue
					}
					require.NotContains(t, []int{401, 403}, a.status, "%s: %s", name, a.body)
					require.NotContains(t, a.body, "Permission denied", name)
				}
			}
			expect("nobody, where there is one token", row.open(), httpapi.OneToken("s3cret"), "")
			expect("another token", row.open(), httpapi.OneToken("s3cret"), "other")
			expect("the one token", true, httpapi.OneToken("s3cret"), "s3cret")
			asksByPolicies(t, row, expect, everything)
			if !row.forAll() {
				return
			}
			for name, rules := range map[string]string{"nobody": "", "another tenant": `namespace "other" { policy = "write" }`} {
				for _, a := range row.asks(t, state, holder(t, rules), "") {
					require.NotContains(t, a.body, marked, name)
				}
			}
		})
	}
}

// asksByPolicies asks as those who have policies: none, another tenant's, one to read everything, exactly what is needed, and all but that.
func asksByPolicies(t *testing.T, row route, expect func(string, bool, httpapi.Resolver, string), everything string) {
	t.Helper()
	shown := strings.Contains(row.needs, "; shows") && row.forAll() // a refusal says as much as an empty answer
	if !shown {
		expect("anonymous", row.forAll(), holder(t, ""), "")
		expect("another tenant", row.forAll(), holder(t, `namespace "other" { policy = "write" }`), "")
	}
	expect("read-only", row.policy == "" || row.policy == "read", holder(t, everything), "")
	if row.plainNeed() != "management" && !shown {
		expect("exactly", true, holder(t, row.exactly()), "")
	}
	if shown {
		return
	}
	for _, rules := range row.less(t) {
		expect("all but that", row.forAll(), holder(t, rules), "")
	}
}
