package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/usage"
)

// anAllocation is one with all that its page can show, with hostile names.
func anAllocation() drover.Allocation {
	healthy := true
	return drover.Allocation{
		ID: "a1", Name: hostile, Namespace: "ns", JobID: "a@b", TaskGroup: hostile, NodeID: "n1", NodeName: hostile,
		DesiredStatus: "run", ClientStatus: "running", ClientDescription: hostile, CreateTime: 1e9,
		PreviousAllocation: "before", NextAllocation: "behind", PreemptedAllocations: []string{"victim"}, FollowupEvalID: "later",
		DeploymentStatus:  &drover.AllocDeploymentStatus{Healthy: &healthy, Canary: true},
		RescheduleTracker: &drover.RescheduleTracker{Events: []*drover.RescheduleEvent{{PrevAllocID: "first", PrevNodeID: hostile, Delay: 5e9}}},
		TaskStates: map[string]*drover.TaskState{
			hostile: {State: "running", Restarts: 7, Events: []*drover.TaskEvent{
				{Type: "Received", DisplayMessage: "first", Time: 15e8}, {Type: "Started", DisplayMessage: hostile, Time: 4e9},
			}},
			"beside": {State: "dead", Failed: true, Events: []*drover.TaskEvent{{Type: "Terminated", DisplayMessage: "between", Time: 3e9}}},
		},
		AllocatedResources: &drover.AllocatedResources{
			Tasks: map[string]*drover.AllocatedTaskResources{hostile: {
				Cpu: drover.AllocatedCpuResources{CpuShares: 500}, Memory: drover.AllocatedMemoryResources{MemoryMB: 256, MemoryMaxMB: 512},
				Devices: []*drover.AllocatedDeviceResource{{Vendor: hostile, DeviceIDs: []string{hostile}}},
			}},
			Shared: drover.AllocatedSharedResources{Ports: []network.PortMapping{{Label: hostile, Value: 24000, To: 80, HostIP: "10.0.0.1"}}},
		},
		Metrics: &drover.AllocationMetric{
			NodesEvaluated: 3, NodesFiltered: 1, ConstraintFiltered: map[string]int{hostile: 1},
			ScoreMetaData: []*drover.NodeScoreMeta{{NodeID: "n1", NormScore: 0.25, Scores: map[string]float64{hostile: 0.5}}},
		},
	}
}

// allocationAPI stands for the part of the API that the pages of allocations ask.
func allocationAPI(w http.ResponseWriter, r *http.Request) {
	reply := func(body any) { _ = json.NewEncoder(w).Encode(body) }
	switch path := r.URL.Path; {
	case path == "/v1/allocations":
		reply([]drover.AllocationListStub{{ID: "a1", Name: hostile, JobID: hostile, Namespace: "ns", NodeName: hostile, ClientStatus: "lost"}})
	case path == "/v1/allocation/a1" && r.Method == http.MethodGet:
		reply(anAllocation())
	case path == "/v1/allocation/a1/stop", path == "/v1/client/allocation/a1/restart":
		reply(map[string]string{})
	case strings.HasPrefix(path, "/v1/client/fs/") && path != "/v1/client/fs/logs/a1":
		filesAPI(w, r)
	case path == "/v1/client/fs/logs/a1":
		logAPI(w, r)
	case path == "/v1/client/allocation/a1/stats":
		used := &usage.ResourceUsage{CpuStats: &usage.CpuStats{TotalTicks: 125, Percent: 5}, MemoryStats: &usage.MemoryStats{RSS: 3 << 20}}
		reply(usage.AllocResourceUsage{Tasks: map[string]*usage.TaskResourceUsage{hostile: {ResourceUsage: used}}})
	default:
		w.WriteHeader(http.StatusBadRequest)
		reply(map[string]string{"message": "refused: <b>"})
	}
}

func TestAnAllocationsPage(t *testing.T) {
	t.Parallel()
	body := ask(t, page(&api{}), "GET", "/ui/allocations/a1", "good", nil).Body.String()
	for _, want := range []string{
		allocText.State["run running"], `<span class="status ok">healthy</span>`, allocText.Canary,
		`href="/ui/jobs/a@b@ns"`, `href="/ui/clients/n1"`,
		"500 MHz", "125 MHz (5.0 %)", "256 MiB – 512 MiB", "3.0 MiB", "10.0.0.1:24000", "<td>80</td>",
		`href="/ui/allocations/before"`, `href="/ui/allocations/behind"`, `href="/ui/allocations/victim"`,
		`href="/ui/allocations/first"`, "<td>5s</td>",
		"3 nodes were looked at, 1 of them left out, 0 were full.", "<td>0.250</td>", "1 node left out",
	} {
		require.Contains(t, body, want)
	}
	require.Equal(t, 5, strings.Count(body, `data-live="Allocation"`), "what is kept up to date")
	require.Equal(t, 1, strings.Count(body, `data-live="Allocation" data-every="2"`), "use changes without an event")
	var types []string
	for _, m := range regexp.MustCompile(`<td>(Received|Started|Terminated)</td>`).FindAllStringSubmatch(body, -1) {
		types = append(types, m[1])
	}
	require.Equal(t, []string{"Started", "Terminated", "Received"}, types, "the newest first, of all tasks")
	require.Contains(t, body, "<td>500ms</td>", "since it was made")
	for _, wanted := range []string{"run", "stop", "evict"} {
		for _, is := range []string{"pending", "running", "complete", "failed", "lost", "unknown"} {
			require.NotEmpty(t, allocText.State[wanted+" "+is], "%s %s", wanted, is)
		}
	}
}

func TestAnActionOnAnAllocationAsksOnceAndIsTheAPIs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"stop": "POST /v1/allocation/a1/stop", "restart": "POST /v1/client/allocation/a1/restart"} {
		a := &api{}
		h := page(a)
		form := url.Values{"task": {hostile}}
		w := ask(t, h, "POST", "/ui/allocations/a1/"+name, "good", form)
		require.Equal(t, http.StatusOK, w.Code)
		require.Contains(t, w.Body.String(), `name="sure" value="1"`)
		require.Contains(t, w.Body.String(), " › &lt;img")
		require.NotContains(t, a.called(), "POST", "nothing is done yet")
		inert(t, w.Body.String())
		form.Set("sure", "1")
		w = ask(t, h, "POST", "/ui/allocations/a1/"+name, "good", form)
		require.Equal(t, "/ui/allocations/a1", w.Header().Get("Location"))
		require.Contains(t, a.called(), want)
		require.Contains(t, follow(t, h, w, "good"), allocText.Actions[name].done)
	}
	h := page(&api{})
	w := ask(t, h, "POST", "/ui/allocations/a1/signal", "good", url.Values{"signal": {" "}})
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), allocText.NoSignal)
	w = ask(t, h, "POST", "/ui/allocations/a1/signal", "good", url.Values{"signal": {"signothing"}, "sure": {"1"}})
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "refused: &lt;b&gt;")
	require.Contains(t, w.Body.String(), `value="signothing"`, "nothing typed is lost")
	require.Equal(t, http.StatusNotFound, ask(t, h, "POST", "/ui/allocations/a1/nothing", "good", nil).Code)
	for _, path := range []string{"/ui/allocations/a1/stop", "/ui/allocations/a1/restart"} {
		w = ask(t, h, "POST", path, "", url.Values{"sure": {"1"}})
		require.Equal(t, http.StatusForbidden, w.Code)
		require.Contains(t, w.Body.String(), text.Forbidden)
	}
}

func TestAllocationsAreListed(t *testing.T) {
	t.Parallel()
	body := ask(t, page(&api{}), "GET", "/ui/allocations", "good", nil).Body.String()
	require.Contains(t, body, `href="/ui/allocations/a1"`)
	require.Contains(t, body, `<span class="status lost">lost</span>`)
	require.Contains(t, body, `href="/ui/allocations" data-key="a" aria-current="page"`)
}
