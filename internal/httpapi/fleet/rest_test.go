package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

func (h *herd) note(format string, args ...any) {
	h.asked = append(h.asked, fmt.Sprintf(format, args...))
}

func (h *herd) Pools(context.Context) ([]fleet.PoolStatus, error) {
	return []fleet.PoolStatus{{Pool: fleet.Pool{Name: "p"}, Machines: map[string]int{"active": 1}}}, nil
}

func (h *herd) DeletePool(_ context.Context, name string) error {
	if name != "p" {
		return drover.Errorf(drover.NotFound, "no pool %q", name)
	}
	h.note("delete %s", name)
	return nil
}

func (h *herd) Pause(_ context.Context, name string, p fleet.Pause) error {
	h.note("pause %s creates %t destroys %t: %s", name, p.Creates, p.Destroys, p.Reason)
	return nil
}

func (h *herd) Apply(_ context.Context, ask fleet.Application) (fleet.Applied, error) {
	h.note("apply %d pools preview %t version %d", len(ask.Pools), ask.Preview, ask.Version)
	return fleet.Applied{Server: "s1.global", Version: 7, Changes: []fleet.Change{{Pool: "p", What: fleet.ChangeAdd}}}, nil
}

func (h *herd) Explain(_ context.Context, id string) (fleet.Explanation, error) {
	return fleet.Explanation{Instance: fleet.Instance{Durable: fleet.Durable{ID: id}}, Text: []string{"It works."}}, nil
}

func (h *herd) Interrupt(_ context.Context, id string, at time.Time) error {
	h.note("interrupt %s %s", id, at.UTC().Format(time.RFC3339))
	return nil
}

func (h *herd) Plan(_ context.Context, pool string) ([]fleet.Plan, error) {
	h.note("plan %q", pool)
	return []fleet.Plan{{Pool: "p", Actions: []fleet.Action{{
		Kind: fleet.ActionCreate, Offering: "o", Count: 2, PerHour: 0.2,
		Why: "demand",
	}}}}, nil
}

func (h *herd) Audit(_ context.Context, pool, instance string, most int) ([]fleet.Audit, error) {
	h.note("audit %q %q %d", pool, instance, most)
	return []fleet.Audit{{Pool: pool, Instance: instance, What: "create"}}, nil
}

func (h *herd) Timeline(_ context.Context, pool string, since time.Duration, most int) (fleet.Timeline, error) {
	h.note("timeline %q %v %d", pool, since, most)
	return fleet.Timeline{Machines: []fleet.MachineTimeline{{
		ID: "m1", Pool: pool, State: fleet.InstanceActive, Phases: []fleet.Phase{{Name: fleet.PhaseAsked}},
	}}}, nil
}

func (h *herd) Costs(_ context.Context, from, by string) (fleet.CostReport, error) {
	if by == "moon" {
		return fleet.CostReport{}, drover.Errorf(drover.Invalid, "by: must be pool, day, job or machine, got %q", by)
	}
	return fleet.CostReport{From: from, By: by, Total: 3}, nil
}

func TestEachRouteAsksTheFleet(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		method, target, body string
		status               int
		want, does           string
	}{
		{"GET", "/v1/fleet/pools", "", 200, `"Machines":{"active":1}`, ""},
		{"GET", "/v1/fleet/pool/p", "", 200, `"Name":"p"`, ""},
		{"DELETE", "/v1/fleet/pool/p", "", 204, "", "delete p"},
		{"DELETE", "/v1/fleet/pool/q", "", 404, `no pool`, ""},
		{"PUT", "/v1/fleet/pool/p/pause", `{"Creates":true,"Reason":"dear"}`, 200, `"Name":"p"`, "pause p creates true destroys false: dear"},
		{"PUT", "/v1/fleet/pool/p/pause", `{"Sells":true}`, 400, "Sells", ""},
		{"GET", "/v1/fleet/apply", "", 200, `"Server":"s1.global","Version":7,`, "apply 0 pools preview true version 0"},
		{
			"PUT", "/v1/fleet/apply", `{"Pools":[{"Name":"p"}],"Version":7}`, 200, `"Pool":"p","What":"add"`,
			"apply 1 pools preview false version 7",
		},
		{"PUT", "/v1/fleet/apply", `{"Files":[]}`, 400, "Files", ""},
		{"GET", "/v1/fleet/instance/i1", "", 200, `"It works."`, ""},
		{"PUT", "/v1/fleet/instance/i1/interrupt", `{"At":"2026-11-23T07:00:00Z"}`, 204, "", "interrupt i1 2026-11-23T07:00:00Z"},
		{"POST", "/v1/fleet/instance/i1/interrupt", "", 204, "", "interrupt i1 0001-01-01T00:00:00Z"},
		{"PUT", "/v1/fleet/instance/i1/interrupt", `{"At":"soon"}`, 400, "cannot parse", ""},
		{"GET", "/v1/fleet/plan?pool=p", "", 200, `"Kind":"create","Offering":"o","Count":2,"PerHour":0.2`, `plan "p"`},
		{"GET", "/v1/fleet/waiting", "", 200, `"Class":"job/g"`, ""},
		{"GET", "/v1/fleet/audit", "", 200, `"What":"create"`, `audit "" "" 200`},
		{"GET", "/v1/fleet/audit?pool=p&instance=i&limit=7", "", 200, `"Instance":"i"`, `audit "p" "i" 7`},
		{"GET", "/v1/fleet/audit?limit=999999999", "", 200, "", `audit "" "" 10000`},
		{"GET", "/v1/fleet/audit?limit=-1", "", 400, "limit", ""},
		{"GET", "/v1/fleet/timeline", "", 200, `"Name":"asked"`, `timeline "" 24h0m0s 100`},
		{"GET", "/v1/fleet/timeline?pool=p&since=1h&limit=7", "", 200, `"State":"active"`, `timeline "p" 1h0m0s 7`},
		{"GET", "/v1/fleet/timeline?since=noon", "", 400, "since", ""},
		{"GET", "/v1/fleet/timeline?limit=x", "", 400, "limit", ""},
		{"GET", "/v1/fleet/cost?from=2026-11-01&by=job", "", 200, `"From":"2026-11-01","By":"job","Total":3`, ""},
		{"GET", "/v1/fleet/cost?by=moon", "", 400, "by: must be", ""},
		{"POST", "/arvados/v1/dispatch/containers/kill", "", 400, "container_uuid parameter not provided", ""},
		{"POST", "/arvados/v1/dispatch/instances/dance", "instance_id=c1", 404, "hold, drain, run or kill", ""},
		{"POST", "/arvados/v1/dispatch/instances/kill", "instance_id=c1&reason=hot", 200, "{}", "kill c1 hot"},
		{"POST", "/arvados/v1/dispatch/instances/hold", "instance_id=c1", 200, "{}", "hold c1 asked for over /arvados/v1/dispatch/instances"},
	} {
		h, ask := serve(t)
		status, text := ask(x.method, x.target, x.body)
		require.Equal(t, x.status, status, "%s %s: %s", x.method, x.target, text)
		require.Contains(t, text, x.want, "%s %s", x.method, x.target)
		if x.does != "" {
			require.Equal(t, []string{x.does}, h.asked, "%s %s", x.method, x.target)
		} else {
			require.Empty(t, h.asked, "%s %s", x.method, x.target)
		}
	}
}

func TestStatesInArvadosWords(t *testing.T) {
	t.Parallel()
	for want, states := range map[string][]fleet.InstanceState{
		"booting":  {fleet.InstancePlanned, fleet.InstanceCreating, fleet.InstanceBooting, fleet.InstanceRegistered},
		"idle":     {fleet.InstanceActive, fleet.InstanceDraining},
		"shutdown": {fleet.InstanceDestroying, fleet.InstanceGone},
		"unknown":  {fleet.InstanceOrphaned, 0},
	} {
		for _, s := range states {
			require.Equal(t, want, workerState(&fleet.Instance{Durable: fleet.Durable{State: s}}), s)
		}
	}
	require.Equal(t, "running", workerState(&fleet.Instance{Durable: fleet.Durable{State: fleet.InstanceDraining}, Work: 1}))
	require.Equal(t, runtimeNeeds{VCPUs: 2, RAM: 10 << 20, MHz: 1001}, needs(drover.Capacity{CPU: 1001, MemoryMB: 10}), "cores are whole")
}

// Each route of the table is served, and described for the document.
func TestTheTableIsServed(t *testing.T) {
	t.Parallel()
	f := &Face{}
	served := map[string]bool{}
	for _, r := range f.Routes() {
		require.NotNil(t, r.Handle)
		served[r.Pattern] = true
	}
	require.NotEmpty(t, f.Operations())
	for _, op := range f.Operations() {
		require.True(t, served[op.Pattern], op.Pattern)
		require.NotEmpty(t, op.Summary, op.Pattern)
		if op.Out != nil {
			_, err := json.Marshal(op.Out)
			require.NoError(t, err)
		}
	}
}
