package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// bearer shows a token as Prometheus' HTTP client does.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// on makes the job run at nodes of the class only.
func on(class string, job *api.Job) *api.Job {
	job.Constraints = []*api.Constraint{api.NewConstraint("${node.class}", "=", class)}
	return job
}

// twoClasses is a server with access control and two nodes of the classes one and two. The token that is returned may read in default.
func twoClasses(t *testing.T) (s *agent, c *api.Client, finds *api.ACLToken) {
	t.Helper()
	const access = "acl {\n  enabled   = true\n  token_ttl = \"1s\"\n}\n"
	dir := t.TempDir()
	s = start(t, append([]string{"-server"}, config(t, filepath.Join(dir, "server"), access)...)...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	for _, class := range []string{"one", "two"} {
		start(t, append([]string{"-client"}, config(t, filepath.Join(dir, class),
			access+clientBlock("servers = [\""+m[1]+"\"]\n  node_class = \""+class+"\""))...)...)
	}
	root, _, err := s.nomad().ACLTokens().Bootstrap(nil)
	require.NoError(t, err)
	s.token = root.SecretID
	c = s.nomad()
	_, err = c.Namespaces().Register(&api.Namespace{Name: "other"}, nil)
	require.NoError(t, err)
	_, err = c.ACLPolicies().Upsert(&api.ACLPolicy{Name: "find", Rules: `namespace "default" { policy = "read" }`}, nil)
	require.NoError(t, err)
	finds, _, err = c.ACLTokens().Create(&api.ACLToken{Type: "client", Policies: []string{"find"}}, nil)
	require.NoError(t, err)
	return s, c, finds
}

// discover lists the services of a namespace, and asks for each by its name.
func discover(t *testing.T, c *api.Client, namespace string) (found []string, err error) {
	t.Helper()
	opts := &api.QueryOptions{AllowStale: true, Namespace: namespace}
	stubs, _, err := c.Services().List(opts)
	for _, stub := range stubs {
		for _, service := range stub.Services {
			instances, _, err := c.Services().Get(service.ServiceName, opts)
			if err != nil {
				return nil, err
			}
			for _, i := range instances {
				require.NotEmpty(t, i.Address+i.NodeID+i.AllocID+i.ID)
				found = append(found, fmt.Sprintf("%s %s %d %s %s %s", i.Namespace, i.ServiceName, i.Port, i.JobID, i.Datacenter,
					strings.Join(i.Tags, ",")))
			}
		}
	}
	return found, err
}

// A service of one node is told to a template of another one and to what discovers services. The calls are those that Prometheus
// (list, then each by its name, stale, with a bearer token) and Traefik (the same, and the event stream) make.
func TestAServiceIsDiscoveredElsewhere(t *testing.T) {
	t.Parallel()
	s, c, finds := twoClasses(t)
	reader := on("two", rawJob("reader", "service", "/bin/sleep", "1000"))
	reader.TaskGroups[0].Tasks[0].Templates = []*api.Template{{
		EmbeddedTmpl: new(`{{ range nomadService "web" }}{{ .Name }}:{{ .Port }} {{ end }}.`), DestPath: new("local/peers"),
		ChangeMode: new("noop"),
	}}
	_, _, err := c.Jobs().Register(reader, nil)
	require.NoError(t, err)
	task(t, c, "reader", "a reader", func(s *api.TaskState) bool { return s.State == "running" })
	allocs, _, err := c.Jobs().Allocations("reader", false, nil)
	require.NoError(t, err)
	peers := func(want string) {
		t.Helper()
		eventually(t, "what the template has", func() (bool, string) {
			r, err := c.AllocFS().Cat(&api.Allocation{ID: allocs[0].ID, NodeID: allocs[0].NodeID}, "main/local/peers", nil)
			require.NoError(t, err)
			text, err := io.ReadAll(r)
			require.NoError(t, err)
			_ = r.Close()
			return string(text) == want, string(text)
		})
	}
	peers(".")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events, err := c.EventStream().Stream(ctx, map[api.Topic][]string{api.TopicService: {"*"}}, 0, &api.QueryOptions{Namespace: "default"})
	require.NoError(t, err)
	for namespace, port := range map[string]string{"default": "8001", "other": "8002"} {
		web := on("one", rawJob("web", "service", "/bin/sleep", "1000"))
		web.Namespace = new(namespace)
		web.TaskGroups[0].Services = []*api.Service{{Name: "web", Provider: "nomad", PortLabel: port, Tags: []string{"traefik.enable=true"}}}
		_, _, err = c.Jobs().Register(web, nil)
		require.NoError(t, err)
	}
	for batch := range events { // until the service is told of; the first ones are empty
		require.NoError(t, batch.Err)
		if len(batch.Events) > 0 && batch.Events[0].Type == "ServiceRegistration" {
			break
		}
	}
	require.NoError(t, ctx.Err())
	peers("web:8001 .")

	eventually(t, "a service in the other namespace", func() (bool, string) {
		found, err := discover(t, c, "other")
		require.NoError(t, err)
		return len(found) == 1 && found[0] == "other web 8002 web dc1 traefik.enable=true", fmt.Sprint(found)
	})
	prometheus, err := api.NewClient(&api.Config{Address: "http://" + s.addr, HttpClient: &http.Client{Transport: bearer(finds.SecretID)}})
	require.NoError(t, err)
	found, err := discover(t, prometheus, "")
	require.NoError(t, err)
	require.Equal(t, []string{"default web 8001 web dc1 traefik.enable=true"}, found)
	found, err = discover(t, prometheus, "other")
	require.True(t, err != nil || len(found) == 0, "a token for another namespace")
	stranger, err := api.NewClient(&api.Config{Address: "http://" + s.addr})
	require.NoError(t, err)
	_, err = discover(t, stranger, "")
	require.ErrorContains(t, err, "403 (Permission denied)")

	_, _, err = c.Jobs().Deregister("web", false, nil)
	require.NoError(t, err)
	task(t, c, "web", "the end", func(s *api.TaskState) bool { return s.State == "dead" })
	peers(".")
	found, err = discover(t, prometheus, "")
	require.NoError(t, err)
	require.Empty(t, found)
	for job, namespace := range map[string]string{"reader": "default", "web": "other"} { // nothing runs on
		c.SetNamespace(namespace)
		_, _, err = c.Jobs().Deregister(job, false, nil)
		require.NoError(t, err)
		task(t, c, job, "the end", func(s *api.TaskState) bool { return s.State == "dead" })
	}
}
