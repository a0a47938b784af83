package nomad_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/tenancy"
)

// holders are who has which token.
type holders struct {
	mu sync.Mutex
	of map[acl.Secret]*rights.Caller // guarded by mu
}

func (h *holders) give(t *testing.T, secret acl.Secret, rules string) {
	t.Helper()
	caller := &rights.Caller{Token: &acl.Token{AccessorID: string(secret)}}
	if rules != "" {
		p, err := policy.Parse(rules)
		require.NoError(t, err, rules)
		caller.Rights = rights.Compile(p)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[acl.Secret]*rights.Caller{}
	}
	h.of[secret] = caller
}

func (h *holders) revoke(secret acl.Secret) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.of, secret)
}

func (h *holders) Resolve(secret acl.Secret) (*rights.Caller, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.of[secret]; c != nil {
		return c, nil
	}
	return nil, drover.Errorf(drover.Forbidden, "ACL token not found")
}

// tenants is a world with a second job, "db" in namespace "other", and tokens of both tenants.
func tenants(t *testing.T, change ...func(*nomad.Config)) (*world, *holders) {
	t.Helper()
	h := &holders{}
	h.give(t, "web", `namespace "default" { policy = "write" }`)
	h.give(t, "db", `namespace "other" { policy = "write" }`)
	h.give(t, "both", `namespace "*" { policy = "read" }
node { policy = "read" }`)
	h.give(t, "none", "")
	w := newWorldOf(t, h, change...)
	w.put(func(txn *store.Txn) {
		db := webJob("db")
		db.Namespace = "other"
		txn.PutNamespace(&tenancy.Namespace{Name: "other"})
		txn.PutJob(db)
		txn.PutEvaluation(&drover.Evaluation{ID: "e-other", Namespace: "other", JobID: "db", Status: drover.EvalComplete})
		txn.PutAllocation(&drover.Allocation{
			ID: "a-other", Namespace: "other", Name: "db.g[0]", NodeID: nodeID, JobID: "db", Job: db, TaskGroup: "g",
			ClientStatus: drover.AllocClientRunning,
		})
	})
	return w, h
}

// as sends a request with a token.
func (w *world) as(token, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	r.Host = "127.0.0.1"
	r.Header.Set("X-Nomad-Token", token)
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec
}

// Lists over all namespaces, counts, the allocations of a node and searches have what the caller may read.
func TestListsHaveWhatTheCallerMayRead(t *testing.T) {
	t.Parallel()
	w, _ := tenants(t)
	for _, c := range []struct{ method, path, body, web, db string }{
		{"GET", "/v1/jobs?namespace=*", "", `"ID":"web"`, `"ID":"db"`},
		{"GET", "/v1/jobs/statuses?namespace=*", "", `"ID":"web"`, `"ID":"db"`},
		{
			"POST", "/v1/jobs/statuses?namespace=*", `{"Jobs":[{"ID":"web","Namespace":"default"},{"ID":"db","Namespace":"other"}]}`,
			`"ID":"web"`, `"ID":"db"`,
		},
		{"GET", "/v1/allocations?namespace=*", "", `"JobID":"web"`, `"JobID":"db"`},
		{"GET", "/v1/evaluations?namespace=*", "", `"JobID":"web"`, `"JobID":"db"`},
		{"GET", "/v1/scaling/policies?namespace=*", "", `"Job":"web"`, `"Job":"db"`},
		{"GET", "/v1/namespaces", "", "", `"Name":"other"`},
		{"POST", "/v1/search", `{"Prefix":"","Context":"jobs","Namespace":"*"}`, `"web"`, `"db"`},
		{"POST", "/v1/search", `{"Prefix":"","Namespace":"*"}`, `"web"`, `"db"`},
		{"POST", "/v1/search", `{"Prefix":"","Context":"allocs","Namespace":"*"}`, allocID, "a-other"},
		{"POST", "/v1/search/fuzzy", `{"Text":"db","Namespace":"*"}`, "", `"db"`},
		{"POST", "/v1/search/fuzzy", `{"Text":"serve","Namespace":"*"}`, `"web"`, `"db"`},
	} {
		for token, sees := range map[string][2]bool{"web": {true, false}, "db": {false, true}, "both": {true, true}} {
			reply := w.as(token, c.method, c.path, c.body)
			require.Equal(t, http.StatusOK, reply.Code, "%s %s: %s", token, c.path, reply.Body)
			if c.web != "" {
				require.Equal(t, sees[0], strings.Contains(reply.Body.String(), c.web), "%s %s %s: %s", token, c.path, c.body, reply.Body)
			}
			require.Equal(t, sees[1], strings.Contains(reply.Body.String(), c.db), "%s %s %s: %s", token, c.path, c.body, reply.Body)
		}
	}
	require.Equal(t, `{"Count":1}`, strings.TrimSpace(w.as("db", "GET", "/v1/evaluations/count?namespace=*", "").Body.String()))
	require.Equal(t, http.StatusForbidden, w.as("none", "GET", "/v1/jobs?namespace=*", "").Code)
	require.Equal(t, http.StatusForbidden, w.as("web", "GET", "/v1/jobs?namespace=other", "").Code)
	require.Equal(t, http.StatusForbidden, w.as("web", "POST", "/v1/search", `{"Context":"nodes"}`).Code)
	require.NotContains(t, w.as("web", "POST", "/v1/search", `{"Namespace":"*"}`).Body.String(), `"nodes"`)
	require.Contains(t, w.as("both", "GET", "/v1/node/"+nodeID+"/allocations", "").Body.String(), "a-other")
	require.Equal(t, "[]", w.as("none", "GET", "/v1/namespaces", "").Body.String())
}

// What has an id is decided about where its namespace is known. Allocations and deployments that may not be read are not there.
func TestObjectsOfOthersAreHidden(t *testing.T) {
	t.Parallel()
	w, _ := tenants(t)
	for path, want := range map[string]int{
		"/v1/allocation/" + allocID:                      404,
		"/v1/deployment/" + deplID:                       404,
		"/v1/evaluation/" + evalID:                       403,
		"/v1/job/web":                                    403,
		"/v1/job/web/allocations":                        403,
		"/v1/namespace/default":                          403,
		"/v1/client/fs/ls/" + allocID:                    403,
		"/v1/client/allocation/" + allocID + "/snapshot": 403,
		"/v1/client/allocation/" + allocID + "/stats":    403,
		"/v1/scaling/policy/default/web/g":               404,
	} {
		reply := w.as("db", "GET", path, "")
		require.Equal(t, want, reply.Code, "%s: %s", path, reply.Body)
		require.Less(t, w.as("both", "GET", path, "").Code, 500, path)
	}
	absent := w.as("db", "GET", "/v1/allocation/00000000-0000-4000-8000-000000000000", "")
	require.Equal(t, absent.Body.String(), w.as("db", "GET", "/v1/allocation/"+allocID, "").Body.String())
	for _, path := range []string{"/v1/evaluation/" + evalID + "/allocations", "/v1/deployment/allocations/" + deplID} {
		require.Equal(t, "[]", w.as("db", "GET", path, "").Body.String(), path)
		require.Contains(t, w.as("web", "GET", path, "").Body.String(), allocID, path)
	}
}

// A write is decided about by the namespace that it would change, whichever the query names.
func TestWritesNeedTheNamespaceThatTheyChange(t *testing.T) {
	t.Parallel()
	w, h := tenants(t)
	for _, c := range []struct {
		path, body string
		want       int
	}{
		{"/v1/jobs", `{"Job":{"ID":"x","Namespace":"other"}}`, 403},
		{"/v1/jobs", `{"Job":{"ID":"x","Namespace":"default","namespace":"other"}}`, 403},
		{"/v1/jobs?namespace=default", `{"Job":{"ID":"x","Namespace":"other"}}`, 403},
		{"/v1/jobs?namespace=other", `{"Job":{"ID":"x"}}`, 403},
		{"/v1/jobs", `{"Namespace":"other","Job":{"ID":"x"}}`, 403},
		{"/v1/jobs?namespace=other", `{"Job":{"ID":"x","Namespace":"default"}}`, 200},
		{"/v1/job/x/plan", `{"Job":{"ID":"x","Namespace":"other"}}`, 403},
		{"/v1/validate/job", `{"Job":{"ID":"x","Namespace":"other"}}`, 403},
		{"/v1/job/web/scale", `{"Count":1,"Target":{"Group":"g","Namespace":"other"}}`, 403},
		{"/v1/job/db/scale?namespace=other", `{"Count":1,"Target":{"Group":"g"}}`, 403},
		{"/v1/job/web/scale?namespace=other", `{"Count":1,"Target":{"Group":"g","Namespace":"default"}}`, 200},
		{"/v1/job/db/evaluate?namespace=other", `{}`, 403},
		{"/v1/job/db/evaluate?namespace=*", `{}`, 200}, // there is no such namespace to change
		{"/v1/allocation/a-other/stop", `{}`, 403},
		{"/v1/client/allocation/a-other/restart", `{}`, 403},
		{"/v1/jobs", `{"Job":{"ID":"x","TaskGroups":[{"Name":"g","Volumes":{"v":{"Type":"host","Source":"data","ReadOnly":true}}}]}}`, 403},
	} {
		reply := w.as("web", "PUT", c.path, c.body)
		if c.want == 403 {
			require.Equal(t, 403, reply.Code, "%s %s: %s", c.path, c.body, reply.Body)
			require.Equal(t, "Permission denied", reply.Body.String())
		} else {
			require.NotEqual(t, 403, reply.Code, "%s %s: %s", c.path, c.body, reply.Body)
		}
	}
	mount := func(readOnly string) int {
		return w.as("mounts", "PUT", "/v1/jobs",
			`{"Job":{"ID":"x","TaskGroups":[{"Name":"g","Volumes":{"v":{"Type":"host","Source":"data","ReadOnly":`+readOnly+`}}}]}}`).Code
	}
	h.give(t, "mounts", `namespace "default" { capabilities = ["submit-job"] }
host_volume "d*" { policy = "read" }`)
	require.Equal(t, 403, mount("false"))
	require.NotEqual(t, 403, mount("true"))
	end := func(token, path string) int { return w.as(token, "DELETE", path, "").Code }
	h.give(t, "ends", `namespace "default" { capabilities = ["deregister-job"] }`)
	require.Equal(t, 403, end("ends", "/v1/job/web?purge=true"))
	require.Equal(t, 403, end("ends", "/v1/job/web?purge=1"))
	require.NotEqual(t, 403, end("ends", "/v1/job/web?purge=false"))
}

// Where a plan would place is for who reads allocations of the namespace, or nodes.
func TestPlansNameNodesToThoseWhoMaySeeThem(t *testing.T) {
	t.Parallel()
	w, h := tenants(t)
	for rules, want := range map[string]bool{
		`namespace "default" { capabilities = ["plan-job"] }`:                                 false,
		`namespace "default" { capabilities = ["plan-job", "read-job"] }`:                     true,
		"namespace \"default\" { capabilities = [\"plan-job\"] }\nnode { policy = \"read\" }": true,
	} {
		h.give(t, "plans", rules)
		reply := w.as("plans", "PUT", "/v1/job/x/plan", `{"Job":{"ID":"x"}}`)
		require.Equal(t, 200, reply.Code, reply.Body)
		require.Equal(t, want, strings.Contains(reply.Body.String(), nodeID), rules)
	}
}

// The event stream has the events that its caller may read, and ends with a line that says why when the token is gone.
func TestEventsAreFilteredAndEndWithTheToken(t *testing.T) {
	t.Parallel()
	w, _ := tenants(t)
	open := func(token, query string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/v1/event/stream"+query, nil)
		require.NoError(t, err)
		r.Header.Set("X-Nomad-Token", token)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	for query, want := range map[string]int{
		"?topic=Job": 403, "?topic=Job&namespace=other": 200, "?topic=Node": 403, "?topic=Job&topic=Node&namespace=other": 403,
		"?namespace=*": 200, "?topic=ACLToken": 403, "": 403,
	} {
		require.Equal(t, want, open("db", query).StatusCode, query)
	}
	require.Equal(t, 403, open("none", "?namespace=*").StatusCode)
	briefly(t, open)
	again, h := tenants(t) // whose events nobody else reads
	w = again
	lines := bufio.NewScanner(open("db", "?namespace=*").Body)
	next := func() string {
		for lines.Scan() {
			if lines.Text() != "{}" {
				return lines.Text()
			}
		}
		return ""
	}
	job := func(id, namespace string) drover.Event {
		return drover.Event{Topic: drover.TopicJob, Key: id, Namespace: namespace}
	}
	w.events.lines <- drover.Events{Index: 11, Events: []drover.Event{job("web", "default"), {Topic: drover.TopicNode, Key: "n"}}}
	w.events.lines <- drover.Events{Index: 12, Events: []drover.Event{
		job("web", "default"), job("db", "other"),
		{Topic: "ACLToken", Key: "secret"},
		{Topic: drover.TopicRunner, Key: "r", Namespace: "default"},
	}}
	line := next()
	require.Contains(t, line, `"Index":12`)
	require.Contains(t, line, `"Key":"db"`)
	for _, hidden := range []string{"web", "secret", `"Key":"r"`} {
		require.NotContains(t, line, hidden)
	}
	h.revoke("db")
	w.events.lines <- drover.Events{Index: 13, Events: []drover.Event{job("db", "other")}}
	require.Equal(t, `{"Error":"subscription closed by server: ACL token not found"}`, next())
	require.Empty(t, next(), "the stream has ended")
}

// briefly: who may see one of the topics is told of that one, and of no other.
func briefly(t *testing.T, open func(token, query string) *http.Response) {
	t.Helper()
	require.Equal(t, 403, open("none", "?namespace=*&brief=true&topic=Job&topic=Node").StatusCode)
	require.Equal(t, 403, open("db", "?namespace=*&brief=true&topic=Node").StatusCode)
	require.Equal(t, 200, open("db", "?namespace=*&brief=true&topic=Job&topic=Node").StatusCode)
}

// TestABriefStreamHidesAndEnds: what the caller may not see has no topic in a brief stream, and the stream ends with the token.
func TestABriefStreamHidesAndEnds(t *testing.T) {
	t.Parallel()
	w, h := tenants(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/v1/event/stream?namespace=*&brief=true", nil)
	require.NoError(t, err)
	r.Header.Set("X-Nomad-Token", "db")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	require.True(t, lines.Scan())
	next := func() string {
		for lines.Scan() {
			if lines.Text() != "{}" {
				return lines.Text()
			}
		}
		return ""
	}
	w.events.lines <- drover.Events{Index: 11, Events: []drover.Event{{Topic: drover.TopicNode, Key: "n"}}}
	w.events.lines <- drover.Events{Index: 12, Events: []drover.Event{
		{Topic: drover.TopicEvaluation, Key: "e", Namespace: "default"},
		{Topic: drover.TopicJob, Key: "db", Namespace: "other"},
		{Topic: drover.TopicACLToken, Key: "t"},
	}}
	require.JSONEq(t, `{"Index": 12, "Topics": ["Job"]}`, next())
	h.revoke("db")
	w.events.lines <- drover.Events{Index: 13, Events: []drover.Event{{Topic: drover.TopicJob, Key: "db", Namespace: "other"}}}
	require.JSONEq(t, `{"Error":"subscription closed by server: ACL token not found"}`, next())
	require.Empty(t, next(), "the stream has ended")
}

// watched tells that somebody waits for a change.
type watched struct {
	answer.State
	waits chan struct{}
}

func (s watched) Watch(table, key string) <-chan struct{} {
	s.waits <- struct{}{}
	return s.State.Watch(table, key)
}

// A blocking query whose caller may not ask any more when it would be answered is refused.
func TestABlockingQueryEndsWithTheToken(t *testing.T) {
	t.Parallel()
	waits := make(chan struct{}, 4)
	w, h := tenants(t, func(c *nomad.Config) { c.State = watched{c.State, waits} })
	index := w.store.Snapshot().Index()
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() { // ends with the answer
		answered <- w.as("web", "GET", "/v1/allocation/"+allocID+"?wait=1m&index="+strconv.FormatUint(index, 10), "")
	}()
	<-waits // it was let in
	h.revoke("web")
	w.put(func(txn *store.Txn) {
		a := *w.store.Snapshot().Allocation(allocID)
		a.ModifyIndex = index + 1
		txn.PutAllocation(&a)
	})
	reply := <-answered
	require.Equal(t, 403, reply.Code, reply.Body)
	require.Equal(t, "ACL token not found", reply.Body.String())
}

// Whoever follows logs, a file or the agent's log, or sits at a terminal, does so as long as they may.
func TestStreamsEndWithTheToken(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"logs":    "/v1/client/fs/logs/" + allocID + "?task=t&type=stdout&follow=true&plain=true",
		"file":    "/v1/client/fs/stream/" + allocID + "?path=x&plain=true",
		"monitor": "/v1/agent/monitor?plain=true",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, h := tenants(t)
			h.give(t, "follower", `namespace "default" { policy = "write" }
agent { policy = "read" }`)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path, nil)
			require.NoError(t, err)
			r.Header.Set("X-Nomad-Token", "follower")
			resp, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Equal(t, http.StatusOK, resp.StatusCode)
			h.give(t, "follower", `namespace "other" { policy = "write" }`)
			_, err = io.ReadAll(resp.Body) // ends
			require.NoError(t, err)
		})
	}
	w, h := tenants(t)
	h.give(t, "more", `namespace "default" { capabilities = ["alloc-exec", "alloc-node-exec"] }`)
	conn := w.dial("sleep%22%5D", http.Header{"X-Nomad-Token": {"more"}})
	s := <-w.node.sessions
	h.give(t, "more", `namespace "default" { capabilities = ["alloc-exec"] }`) // the command runs on the node
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			require.ErrorContains(t, err, "1008 (policy violation): Permission denied")
			break
		}
	}
	<-s.closed
}

// To execute in what sees the node's own files needs a capability of its own.
func TestExecOnTheNodeNeedsMore(t *testing.T) {
	t.Parallel()
	w, h := tenants(t)
	h.give(t, "exec", `namespace "default" { capabilities = ["alloc-exec"] }`)
	h.give(t, "more", `namespace "default" { capabilities = ["alloc-exec", "alloc-node-exec"] }`)
	closes := func(token string) string {
		conn := w.dial("echo%22%5D", http.Header{"X-Nomad-Token": {token}})
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return err.Error()
			}
		}
	}
	for token, want := range map[string]string{
		"none": "1008 (policy violation): Permission denied", "db": "1008 (policy violation): Permission denied",
		"web": "1008 (policy violation): Permission denied", "exec": "1008 (policy violation): Permission denied", "more": "1000",
		"gone": "1008 (policy violation): ACL token not found",
	} {
		require.Contains(t, closes(token), want, token)
	}
}
