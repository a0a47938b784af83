package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
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

// servers shows who agrees on the state, and who knows whom. Who may not read the one still sees the other.
func (f *Face) servers(w http.ResponseWriter, r *http.Request) error {
	judged, err := f.health(r)
	parts := []html.Part{html.El("h2", html.Text(clusterText.Consensus))}
	if err != nil {
		parts = append(parts, failed(r, err))
	} else {
		parts = append(parts, consensus(judged))
	}
	var known members
	parts = append(parts, html.El("h2", html.Text(clusterText.Gossip)))
	if unknown := f.ask(r.Context(), r, http.MethodGet, "/v1/agent/members", nil, &known); unknown != nil {
		if err != nil { // nothing of the page is there
			return f.show(w, r, clusterText.Servers, html.Part{}, err)
		}
		parts = append(parts, failed(r, unknown))
	} else {
		parts = append(parts, gossip(known))
	}
	return f.show(w, r, clusterText.Servers, livePart("servers", nil, 2, parts...), nil)
}

// health asks how autopilot judges the servers. The API answers with 429 while it finds them unhealthy, which is no error here.
func (f *Face) health(r *http.Request) (health, error) {
	const path = "/v1/operator/autopilot/health"
	a, h := &answer{header: http.Header{}}, health{}
	err := f.call(r.Context(), r, a, http.MethodGet, path, nil)
	if err != nil && httpapi.Status(err) != http.StatusTooManyRequests {
		return h, err
	}
	if unread := json.Unmarshal(a.kept.Bytes(), &h); unread != nil {
		if err != nil { // a limit of requests has the same status, and text
			return h, err
		}
		return h, fmt.Errorf("reading the answer of %s: %w", path, unread)
	}
	return h, nil
}

func consensus(h health) html.Part {
	rows := make([]html.Part, 0, len(h.Servers))
	for _, s := range h.Servers {
		role := []string{clusterText.NoVoter}
		if s.Voter {
			role[0] = clusterText.Voter
		}
		if s.Leader {
			role = append(role, clusterText.Leader)
		}
		rows = append(rows, row(html.Name(s.Name), judgement(s.Healthy), html.Text(strings.Join(role, ", ")), instant(s.StableSince),
			html.Text(s.LastContact), html.Text(fmt.Sprint(s.LastTerm)), html.Text(fmt.Sprint(s.LastIndex)), html.Text(s.Version),
			html.Text(s.Address)))
	}
	return html.Group(
		html.If(!h.Healthy, notice("warn", clusterText.Unhealthy, clusterText.UnhealthyMore)),
		facts(factOf(clusterText.Judgement, judgement(h.Healthy)), factOf(clusterText.Voters, html.Int(len(h.Voters))),
			factOf(clusterText.Tolerance, html.Int(h.FailureTolerance))),
		table(clusterText.Consensus, clusterText.ConsensusColumns, rows, clusterText.NoServers))
}

func judgement(healthy bool) html.Part {
	if healthy {
		return status(clusterText.Healthy)
	}
	return status(clusterText.Unhealthy)
}

func gossip(known members) html.Part {
	rows := make([]html.Part, 0, len(known.Members))
	for _, m := range known.Members {
		rows = append(rows, row(html.Name(m.Name), status(m.Status), html.Text(fmt.Sprintf("%s:%d", m.Addr, m.Port)),
			html.Name(m.Tags["region"]), html.Name(m.Tags["dc"]), html.Text(m.Tags["build"])))
	}
	return table(clusterText.Gossip, clusterText.GossipColumns, rows, clusterText.NoServers)
}
