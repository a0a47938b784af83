package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// health is what the page shows of the answer of /v1/operator/autopilot/health.
type health struct {
	Healthy          bool
	FailureTolerance int
	Voters           []string
	Servers          []serverHealth
}

type serverHealth struct {
	Name, Address, SerfStatus, Version, LastContact string
	Leader, Healthy, Voter                          bool
	LastTerm, LastIndex                             uint64
	StableSince                                     time.Time
}

// members is what the page shows of the answer of /v1/agent/members.
type members struct {
	Members []struct {
		Name, Addr, Status string
		Port               uint16
		Tags               map[string]string
	}
}

// servers shows who agrees on the state, how they are kept healthy, and who knows whom. Who may not read the one still sees the others.
func (h *Pages) servers(w http.ResponseWriter, r *http.Request) error {
	judged, err := h.health(r)
	content := []html.Part{html.El("h2", html.Text(Text.Consensus))}
	if l := h.Levels(r); l == nil || l.Management || l.Agent != "" {
		content = slices.Insert(content, 0, html.El("p", html.El("a", html.Href(html.Path("ui", "doctor")), html.Text(Text.AskDoctor))))
	}
	if err != nil {
		content = append(content, h.Failed(r, err))
	} else {
		content = append(content, consensus(judged))
	}
	var known members
	unknown := h.Ask(r, "/v1/agent/members", &known)
	if unknown != nil && err != nil { // nothing of the page is there
		return h.Show(w, r, Text.Servers, html.Part{}, err)
	}
	if err == nil { // it needs the same right
		content = append(content, html.El("h2", html.Text(Text.Autopilot)), h.autopilot(r))
	}
	content = append(content, html.El("h2", html.Text(Text.Gossip)))
	if unknown != nil {
		content = append(content, h.Failed(r, unknown))
	} else {
		content = append(content, gossip(known))
	}
	return h.Show(w, r, Text.Servers, parts.Live("servers", nil, 2, content...), nil)
}

// health asks how autopilot judges the servers. The API answers with 429 while it finds them unhealthy, which is no error here.
func (h *Pages) health(r *http.Request) (health, error) {
	var said health
	err := h.Ask(r, "/v1/operator/autopilot/health", &said)
	if err != nil && httpapi.Status(err) == http.StatusTooManyRequests && json.Unmarshal([]byte(httpapi.Message(err)), &said) == nil {
		return said, nil
	}
	return said, err
}

func consensus(h health) html.Part {
	rows := make([]html.Part, 0, len(h.Servers))
	for _, s := range h.Servers {
		role := []string{Text.NoVoter}
		if s.Voter {
			role[0] = Text.Voter
		}
		if s.Leader {
			role = append(role, Text.Leader)
		}
		rows = append(rows, parts.Row(html.Name(s.Name), judgement(s.Healthy), html.Text(strings.Join(role, ", ")), parts.Instant(s.StableSince),
			html.Text(s.LastContact), html.Text(fmt.Sprint(s.LastTerm)), html.Text(fmt.Sprint(s.LastIndex)), html.Text(s.Version),
			html.Text(s.Address)))
	}
	return html.Group(
		html.If(!h.Healthy, notice("warn", Text.Unhealthy, Text.UnhealthyMore)),
		parts.Facts(parts.Fact(Text.Judgement, judgement(h.Healthy)), parts.Fact(Text.Voters, html.Int(len(h.Voters))),
			parts.Fact(Text.Tolerance, html.Int(h.FailureTolerance))),
		parts.Table(Text.Consensus, Text.ConsensusColumns, rows, Text.NoServers))
}

// autopilot shows how the servers are kept healthy.
func (h *Pages) autopilot(r *http.Request) html.Part {
	var c cluster.Autopilot
	if err := h.Ask(r, "/v1/operator/autopilot/configuration", &c); err != nil {
		return h.Failed(r, err)
	}
	return parts.Facts(
		parts.Fact(Text.CleanUp, html.Text(yesNo(c.CleanupDeadServers))),
		parts.Fact(Text.Silent, html.Text(parts.Short(time.Duration(c.LastContactThreshold)))),
		parts.Fact(Text.Behind, html.Text(fmt.Sprint(c.MaxTrailingLogs))),
		parts.Fact(Text.Stable, html.Text(parts.Short(time.Duration(c.ServerStabilizationTime)))),
		parts.Fact(Text.Quorum, html.Text(fmt.Sprint(c.MinQuorum))))
}

func judgement(healthy bool) html.Part {
	if healthy {
		return parts.Status(Text.Healthy)
	}
	return parts.Status(Text.Unhealthy)
}

func yesNo(yes bool) string {
	if yes {
		return Text.Yes
	}
	return Text.No
}

func gossip(known members) html.Part {
	rows := make([]html.Part, 0, len(known.Members))
	for _, m := range known.Members {
		rows = append(rows, parts.Row(html.Name(m.Name), parts.Status(m.Status), html.Text(fmt.Sprintf("%s:%d", m.Addr, m.Port)),
			html.Name(m.Tags["region"]), html.Name(m.Tags["dc"]), html.Text(m.Tags["build"])))
	}
	return parts.Table(Text.Gossip, Text.GossipColumns, rows, Text.NoServers)
}

// doctor has each server examined, when the page is opened: it is not kept up to date, as the servers are asked for it. Who may not read
// the one of servers and nodes still sees the other.
func (h *Pages) doctor(w http.ResponseWriter, r *http.Request) error {
	l := h.Levels(r)
	seesServers, seesNodes := l == nil || l.Management || l.Agent != "", l == nil || l.Management || l.Node != ""
	var body []html.Part
	if seesServers || !seesNodes { // who sees neither is told so
		var x cluster.Examination
		if err := h.Ask(r, api("doctor"), &x); err != nil {
			return h.Show(w, r, Text.Doctor, html.Part{}, err)
		}
		body = append(body, serversFound(&x))
	}
	if seesNodes {
		body = append(body, h.nodesFound(r))
	}
	return h.Show(w, r, Text.Doctor, html.Group(append(body, html.El("form", html.El("button", html.Text(Text.Again))))...), nil)
}

// serversFound is what was found of the servers, the worst first.
func serversFound(x *cluster.Examination) html.Part {
	rows := make([]html.Part, 0, len(x.Findings))
	for _, state := range []string{cluster.Broken, cluster.Weak, cluster.OK} {
		for _, f := range x.Findings {
			if f.State == state {
				rows = append(rows, parts.Row(finding(f.State), html.Text(f.Check), html.Name(f.Server), html.Name(f.Says)))
			}
		}
	}
	return html.Group(notice(toneOf[x.State], Text.Verdicts[x.State], ""), html.El("h2", html.Text(Text.Servers)),
		parts.Table(Text.Servers, Text.DoctorColumns, rows, Text.NoServers))
}

// nodesFound is what the nodes found of themselves.
func (h *Pages) nodesFound(r *http.Request) html.Part {
	var x cluster.NodesExamination
	if err := h.Ask(r, api("doctor", "nodes"), &x); err != nil {
		return html.Group(html.El("h2", html.Text(Text.NodesFound)), h.Failed(r, err))
	}
	rows := make([]html.Part, 0, len(x.Findings))
	for _, f := range x.Findings {
		links := make([]html.Part, 0, 2*len(f.Nodes)+1)
		for i, n := range f.Nodes {
			if i > 0 {
				links = append(links, html.Text(", "))
			}
			links = append(links, html.El("a", html.Href(html.Path("ui", "clients", n.ID)), html.Name(n.Name)))
		}
		if more := f.Count - len(f.Nodes); more > 0 {
			links = append(links, html.Text(fmt.Sprintf(Text.NodesMore, more)))
		}
		rows = append(rows, parts.Row(finding(f.State), html.Text(f.Check), html.Group(links...), html.Name(f.Says)))
	}
	said := fmt.Sprintf(Text.NodesLooked, x.Nodes)
	if x.Silent > 0 {
		said += " " + fmt.Sprintf(Text.NodesSilent, x.Silent)
	}
	return html.Group(html.El("h2", html.Text(Text.NodesFound)), parts.Table(Text.NodesFound, Text.NodesFoundColumns, rows, Text.NodesWell),
		html.El("p", html.Class("muted"), html.Text(said)))
}

var toneOf = map[string]string{cluster.OK: "ok", cluster.Weak: "warn", cluster.Broken: "bad"}

func finding(state string) html.Part { return parts.Toned(toneOf[state], state) }
