package agent

import (
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

// agentSelf answers GET /v1/agent/self.
func (f *face) agentSelf(w http.ResponseWriter, r *http.Request) error {
	return f.Reply(w, r, f.Process.Self())
}

// agentMembers answers GET /v1/agent/members: the agent that is asked comes first, then the others by name.
func (f *face) agentMembers(w http.ResponseWriter, r *http.Request) error {
	self := f.Process.Self().Member
	list := slices.Clone(f.Servers.Members())
	if at := slices.IndexFunc(list, func(m Member) bool { return m.Name == self.Name }); at > 0 {
		asked := list[at]
		list = slices.Insert(slices.Delete(list, at, at+1), 0, asked)
	}
	return f.Reply(w, r, struct {
		ServerName, ServerRegion, ServerDC string
		Members                            []Member
	}{self.Name, f.Region, self.Tags["dc"], list})
}

// agentServers answers GET /v1/agent/servers with the addresses that nodes dial.
func (f *face) agentServers(w http.ResponseWriter, r *http.Request) error {
	return f.Reply(w, r, append([]string{}, f.Servers.Peers()...))
}

// reload answers PUT /v1/agent/reload.
func (f *face) reload(w http.ResponseWriter, _ *http.Request) error {
	if err := f.Process.Reload(); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// agentHealth answers GET /v1/agent/health, 500 if a part is not well; type=client or type=server selects one.
func (f *face) agentHealth(w http.ResponseWriter, r *http.Request) error {
	var answer struct {
		Client *Health `json:"client,omitempty"`
		Server *Health `json:"server,omitempty"`
	}
	answer.Server, answer.Client = f.Process.Health()
	switch kind := r.URL.Query().Get("type"); kind {
	case "":
	case "client":
		answer.Server = nil
	case "server":
		answer.Client = nil
	default:
		return drover.Errorf(drover.Invalid, "invalid type %q: it is client or server", kind)
	}
	status := http.StatusOK
	for _, h := range []*Health{answer.Client, answer.Server} {
		if h != nil && !h.Ok {
			status = http.StatusInternalServerError
		}
	}
	return httpapi.WriteJSON(w, r, status, answer)
}

// agentHost tells of the machine what helps to understand it. Environment variables may hold secrets: left out.
func (f *face) agentHost(w http.ResponseWriter, r *http.Request) error {
	if err := f.onlyHere(r); err != nil {
		return err
	}
	type host struct {
		OS          string
		Network     []map[string]string
		ResolvConf  string
		Hosts       string
		Environment map[string]string
		Disk        map[string]struct{}
	}
	return f.Reply(w, r, struct {
		AgentID  string
		HostData host
	}{f.Process.Self().Member.Name, host{
		OS: runtime.GOOS + " " + runtime.GOARCH, Network: []map[string]string{}, ResolvConf: textOf("/etc/resolv.conf"),
		Hosts: textOf("/etc/hosts"), Environment: map[string]string{}, Disk: map[string]struct{}{},
	}})
}

// textOf is a file's text; a file that cannot be read is empty, as the answer is for people who look for a fault.
func textOf(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(b)
}

// onlyHere refuses requests for another agent. Those for another server were relayed to it before.
func (f *face) onlyHere(r *http.Request) error {
	v := r.URL.Query()
	node, server := v.Get("node_id"), v.Get("server_id")
	switch {
	case node != "" && server != "":
		return drover.Errorf(drover.Invalid, "Cannot target node and server simultaneously")
	case node != "" && node != f.Process.LocalNode():
		return drover.Errorf(drover.NotImplemented, "asking another node's agent is not implemented yet")
	case server != "" && server != "leader" && !isCalled(f.Process.Self().Member, server):
		return httpapi.UnknownServer(server)
	}
	return nil
}

// isCalled reports whether the member has the name: its full one, the one without its region, or its id.
func isCalled(m Member, name string) bool {
	return name == m.Name || name == strings.TrimSuffix(m.Name, "."+m.Tags["region"]) || name == m.Tags["id"]
}

// here answers with a bare handler, unless the request is for another agent.
func (f *face) here(h http.HandlerFunc) httpapi.Handle {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := f.onlyHere(r); err != nil {
			return err
		}
		h(w, r)
		return nil
	}
}

// metrics answers GET /v1/metrics.
func (f *face) metrics(w http.ResponseWriter, r *http.Request) error {
	f.Process.Metrics().ServeHTTP(w, r)
	return nil
}
