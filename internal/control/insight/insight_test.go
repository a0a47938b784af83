package insight_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/control/insight"
	"github.com/drover-project/drover/volume"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func before(d time.Duration) int64 { return now.Add(-d).UnixNano() }

// state is a snapshot of lists.
type state struct {
	nodes       []*drover.Node
	jobs        []*drover.Job
	evaluations []*drover.Evaluation
	deployments []*drover.Deployment
	volumes     []*volume.HostVolume
}

func (s *state) Nodes(string) iter.Seq[*drover.Node] { return slices.Values(s.nodes) }
func (s *state) Evaluations(_, _ string) iter.Seq[*drover.Evaluation] {
	return slices.Values(s.evaluations)
}

func (s *state) Deployments(_, _ string) iter.Seq[*drover.Deployment] {
	return slices.Values(s.deployments)
}

func (s *state) HostVolumes(_, _ string) iter.Seq[*volume.HostVolume] {
	return slices.Values(s.volumes)
}

func (s *state) Job(namespace, id string) *drover.Job {
	for _, j := range s.jobs {
		if j.Namespace == namespace && j.ID == id {
			return j
		}
	}
	return nil
}

func all(string) bool  { return true }
func none(string) bool { return false }

var everybody = cluster.Viewer{Servers: true, Nodes: true, Fleet: true, Jobs: all, Runners: all, Volumes: all}

// judged is what everybody sees: "state code subject count: says" of each concern.
func judged(f insight.Facts) (cluster.Attention, []string) {
	f.Now = now
	if f.State == nil {
		f.State = &state{}
	}
	a := insight.Judge(f).For(everybody)
	lines := []string{}
	for _, c := range a.Concerns {
		lines = append(lines, fmt.Sprintf("%s %s %s %d: %s", c.State, c.Code, c.Subject, c.Count, c.Says))
	}
	return a, lines
}

func saysOf(a cluster.Attention, area string) string {
	for _, one := range a.Areas {
		if one.Name == area {
			return one.State + ": " + one.Says
		}
	}
	return ""
}

func TestAnEmptyClusterIsWell(t *testing.T) {
	t.Parallel()
	a, lines := judged(insight.Facts{Servers: insight.Servers{Healthy: true, List: []insight.Server{{ID: "a", Healthy: true, Voter: true}}}})
	require.Empty(t, lines)
	require.Equal(t, cluster.OK, a.State)
	require.Equal(t, []cluster.Area{
		{Name: "servers", State: "ok", Says: "1 of 1 server healthy; one votes, so nothing is written while it is down."},
		{Name: "nodes", State: "ok", Says: "No node."},
		{Name: "evaluations", State: "ok", Says: "Nothing waits."},
		{Name: "deployments", State: "ok", Says: "Nothing is rolled out."},
		{Name: "environments", State: "ok", Says: "No environment."},
	}, a.Areas)
}

func TestServers(t *testing.T) {
	t.Parallel()
	three := func(healthy ...bool) (s insight.Servers) {
		for i, h := range healthy {
			s.List = append(s.List, insight.Server{ID: fmt.Sprint(i), Name: fmt.Sprintf("s%d", i), Voter: true, Healthy: h, Status: "alive"})
		}
		return s
	}
	s := three(true, true, true)
	s.Healthy, s.Tolerance = true, 1
	a, lines := judged(insight.Facts{Servers: s})
	require.Empty(t, lines)
	require.Equal(t, "ok: 3 of 3 servers healthy; 1 may fail at once.", saysOf(a, "servers"))
	a, lines = judged(insight.Facts{Servers: three(true, false, true)})
	require.Equal(t, []string{
		"weak server.unhealthy 1 1: server s1 is unhealthy (alive)",
		"weak servers.no_tolerance  1: 3 servers vote, and one more failure stops the cluster",
	}, lines)
	require.Equal(t, "weak: 2 of 3 servers healthy; 0 may fail at once.", saysOf(a, "servers"))
	_, lines = judged(insight.Facts{Servers: three(false)})
	require.Equal(t, []string{"broken server.unhealthy 0 1: server s0 is unhealthy (alive)"}, lines)
}

func TestNodes(t *testing.T) {
	t.Parallel()
	s := &state{nodes: []*drover.Node{
		{ID: "1", Name: "one", Status: "ready", SchedulingEligibility: "eligible", Drivers: map[string]*drover.DriverInfo{
			"docker": {Detected: true, HealthDescription: "no daemon"}, "java": {}, "exec": {Detected: true, Healthy: true},
		}},
		{ID: "2", Name: "two", Status: "down", StatusUpdatedAt: now.Add(-time.Minute).Unix()},
		{ID: "3", Name: "three", Status: "ready", Drain: true},
		{ID: "4", Name: "four", Status: "ready", SchedulingEligibility: "ineligible"},
		{ID: "5", Name: "five", Status: "disconnected"},
	}}
	a, lines := judged(insight.Facts{State: s})
	require.Equal(t, []string{
		"weak node.disconnected 5 1: node five is disconnected, and its work may still run there",
		"weak node.down 2 1: node two is down",
		"weak node.driver 1 1: driver docker of node one does not work: no daemon",
	}, lines)
	require.Equal(t, "weak: 1 of 5 nodes ready for work, 2 away, 1 draining, 1 not eligible or not ready.", saysOf(a, "nodes"))
	require.Equal(t, now.Add(-time.Minute), a.Concerns[1].Since)
	_, lines = judged(insight.Facts{State: &state{nodes: s.nodes[2:4]}})
	require.Equal(t, []string{"broken nodes.none_ready  2: no node takes work: 0 away, 1 draining, 1 not eligible or not ready"}, lines)
}

// TestWhatNodesFoundOfThemselves: what several found alike is told together, the worst first; of one that is named also what is well.
func TestWhatNodesFoundOfThemselves(t *testing.T) {
	t.Parallel()
	found := func(rights string) map[string]string {
		had := map[string]string{"drover.secrets": "tmpfs", "unique.examined.gone": "ok"}
		return cluster.WithParts(had, cluster.PartAttributes([]cluster.Part{
			{Check: "control groups", State: cluster.OK, Says: "v2: cpu, memory"},
			{Check: "rights", State: rights, Says: "not root: it is weak"},
			{Check: "seccomp", State: cluster.Missing, Needed: rights == cluster.Missing},
		}))
	}
	s := &state{}
	for i := range 12 {
		n := &drover.Node{ID: fmt.Sprintf("%02d", i), Name: fmt.Sprintf("n%02d", 11-i), Status: "ready", Attributes: found(cluster.Weak)}
		s.nodes = append(s.nodes, n)
	}
	s.nodes[0].Attributes["drover.secrets"] = "disk: no tmpfs here"
	s.nodes[1].Attributes = nil
	s.nodes[2].Status = "down"
	s.nodes[3].Drivers = map[string]*drover.DriverInfo{
		"docker": {HealthDescription: "no daemon"}, "sandbox": {HealthDescription: "no overlay"}, "java": nil,
		"raw_exec": {Detected: true, Healthy: true, Attributes: map[string]string{"driver.raw_exec.weaker": "no groups"}},
	}
	x := insight.ExamineNodes(s, "")
	var lines []string
	for _, f := range x.Findings {
		require.LessOrEqual(t, len(f.Nodes), 10)
		lines = append(lines, fmt.Sprintf("%s %s %d %s: %s", f.State, f.Check, f.Count, f.Nodes[0].Name, f.Says))
	}
	require.Equal(t, []string{
		"broken answers 1 n09: It is down.", "broken driver sandbox 1 n08: no overlay", "weak rights 11 n00: not root: it is weak",
		"weak seccomp 11 n00: ", "weak driver raw_exec 1 n08: no groups", "weak secrets 1 n11: Tasks' secrets are on the disk: no tmpfs here",
	}, lines)
	require.Equal(t, []any{12, 1, cluster.Broken}, []any{x.Nodes, x.Silent, x.State})
	one := &state{nodes: []*drover.Node{{ID: "a1", Name: "web", Status: "ready", Attributes: found(cluster.OK)}}}
	x = insight.ExamineNodes(one, "a1")
	require.Len(t, x.Findings, 4)
	require.Equal(t, "v2: cpu, memory", x.Findings[2].Says)
	require.Equal(t, "control groups", x.Findings[2].Check)
	one.nodes[0].Attributes = found(cluster.Missing)
	require.Equal(t, cluster.Broken, insight.ExamineNodes(one, "").State, "sandboxes need it")
	require.Equal(t, cluster.NodesExamination{State: cluster.OK, Findings: []cluster.NodesFinding{}}, insight.ExamineNodes(&state{}, ""))
}

// TestAnEvaluationThatWaits: the reasons stand in the one that the blocked one follows, and what the fleet does about it is told.
func TestAnEvaluationThatWaits(t *testing.T) {
	t.Parallel()
	metric := &drover.AllocationMetric{
		NodesEvaluated: 2, NodesExhausted: 2, CoalescedFailures: 3,
		DimensionExhausted: map[string]int{"memory": 2},
	}
	s := &state{evaluations: []*drover.Evaluation{
		{
			ID: "1", JobID: "web", Namespace: "default", Status: "complete", BlockedEval: "2",
			FailedTGAllocs: map[string]*drover.AllocationMetric{"api": metric},
		},
		{ID: "2", JobID: "web", Namespace: "default", Status: "blocked", CreateTime: before(time.Hour)},
		{ID: "3", JobID: "py", Namespace: "team", Status: "blocked", QuotaLimitReached: "small"},
		{ID: "4", JobID: "environment-py", Namespace: "team", Status: "blocked"},
		{ID: "5", JobID: "new", Namespace: "team", Status: "pending", CreateTime: before(time.Second)},
		{ID: "6", JobID: "old", Namespace: "team", Status: "pending", CreateTime: before(time.Minute)},
		{ID: "7", JobID: "later", Namespace: "team", Status: "pending", CreateTime: before(time.Minute), WaitUntil: now.Add(time.Hour)},
	}}
	pool := fleet.PoolStatus{Pool: fleet.Pool{Name: "std"}, Waiting: []fleet.Waiting{{
		Class: "web/api", Reason: "a machine is bought", ReadyAt: now.Add(time.Minute),
	}}}
	a, lines := judged(insight.Facts{State: s, Pools: []fleet.PoolStatus{pool}})
	require.Equal(t, []string{
		"broken job.not_placed py 1: job py: the quota is used up: small",
		"broken job.not_placed web 4: job web, group api: 4 not placed: 2 nodes without enough room, not enough memory on 2 nodes" +
			"; fleet: a machine is bought, ready about 03:05:05",
		"broken job.not_scheduled old 1: job old waits for a scheduler",
	}, lines)
	require.Equal(t, "broken: 3 wait for room, 2 for a scheduler.", saysOf(a, "evaluations"))
	require.Equal(t, "drover eval status 2", a.Concerns[1].Next)
}

func TestDeployments(t *testing.T) {
	t.Parallel()
	group := func(s drover.DeploymentState) map[string]*drover.DeploymentState {
		return map[string]*drover.DeploymentState{"g": &s}
	}
	moving := drover.DeploymentState{
		DesiredTotal: 3, HealthyAllocs: 1, ProgressDeadline: 10 * time.Minute,
		RequireProgressBy: now.Add(9 * time.Minute),
	}
	slow, sick := moving, moving
	slow.RequireProgressBy, sick.UnhealthyAllocs = now.Add(4*time.Minute), 1
	canary := drover.DeploymentState{DesiredTotal: 3, DesiredCanaries: 1, HealthyAllocs: 1}
	auto, young := canary, canary
	auto.AutoPromote, young.HealthyAllocs = true, 0
	for name, c := range map[string]struct {
		d     drover.Deployment
		lines []string
		says  string
	}{
		"moves": {drover.Deployment{Status: "running", TaskGroups: group(moving)}, []string{}, "ok: 1 deployment, 0 without getting further."},
		"slow": {
			drover.Deployment{Status: "running", TaskGroups: group(slow)},
			[]string{"weak deployment.stalled j 1: job j, group g: version 2 has 1 of 3 healthy, 0 unhealthy, " +
				"no progress for 6m0s; it fails at 03:08:05"},
			"weak: 1 deployment, 1 without getting further.",
		},
		"sick": {
			drover.Deployment{Status: "running", TaskGroups: group(sick)},
			[]string{"weak deployment.stalled j 1: job j, group g: version 2 has 1 of 3 healthy, 1 unhealthy, " +
				"no progress for 1m0s; it fails at 03:13:05"},
			"weak: 1 deployment, 1 without getting further.",
		},
		"canary": {
			drover.Deployment{Status: "running", TaskGroups: group(canary)},
			[]string{"weak deployment.promotion j 1: job j: the canaries of version 2 are healthy and wait for promotion"},
			"weak: 1 deployment, 1 without getting further.",
		},
		"auto":  {drover.Deployment{Status: "running", TaskGroups: group(auto)}, []string{}, "ok: 1 deployment, 0 without getting further."},
		"young": {drover.Deployment{Status: "running", TaskGroups: group(young)}, []string{}, "ok: 1 deployment, 0 without getting further."},
		"paused": {
			drover.Deployment{Status: "paused"},
			[]string{"weak deployment.paused j 1: job j: the deployment of version 2 is paused"},
			"weak: 1 deployment, 1 without getting further.",
		},
		"failed": {
			drover.Deployment{Status: "failed", StatusDescription: "too slow"},
			[]string{"broken deployment.failed j 1: job j: the deployment of version 2 failed: too slow"},
			"broken: Nothing is rolled out.",
		},
		"done": {drover.Deployment{Status: "successful"}, []string{}, "ok: Nothing is rolled out."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.d.JobID, c.d.Namespace, c.d.JobVersion, c.d.CreateIndex = "j", "ns", 2, 7
			older := &drover.Deployment{JobID: "j", Namespace: "ns", Status: "failed", JobVersion: 1, CreateIndex: 5}
			s := &state{deployments: []*drover.Deployment{older, &c.d}, jobs: []*drover.Job{{ID: "j", Namespace: "ns", Version: 2}}}
			a, lines := judged(insight.Facts{State: s})
			require.Equal(t, c.lines, lines)
			require.Equal(t, c.says, saysOf(a, "deployments"))
			s.jobs[0].Stop = true
			if c.d.Status == "failed" {
				_, lines = judged(insight.Facts{State: s})
				require.Empty(t, lines, "nobody wants the job any more")
			}
		})
	}
}

func TestEnvironments(t *testing.T) {
	t.Parallel()
	a, lines := judged(insight.Facts{Environments: []execution.PoolStatus{
		{Environment: "filling", Size: 4, Warm: 1, Starting: 3},
		{Environment: "full", Size: 2, Warm: 2, Claimed: 1},
		{Environment: "empty", Namespace: "team", Size: 2, Queued: 2, Waiting: 3, LastError: "no room"},
		{Environment: "failing", Size: 2, Warm: 1, Queued: 1, LastError: "no image"},
		{Environment: "short", Size: 5, Warm: 1, Starting: 1, Queued: 3},
	}})
	require.Equal(t, []string{
		"broken environment.waiting empty 3: environment empty has no warm runner, and 3 claims wait: no room",
		"weak environment.failing failing 1: environment failing has 1 of 2 runners warm: no image",
		"weak environment.short short 3: environment short has 1 of 5 runners warm, and 3 without a place",
	}, lines)
	require.Equal(t, "broken: 5 environments: 5 of 15 runners warm, 1 claimed, 3 claims wait.", saysOf(a, "environments"))
	require.Equal(t, "drover env status -namespace team empty", a.Concerns[0].Next)
}

func TestFleet(t *testing.T) {
	t.Parallel()
	machine := func(id string, s fleet.InstanceState, change func(m *fleet.Instance)) fleet.Instance {
		m := fleet.Instance{Durable: fleet.Durable{ID: id, State: s, Price: 0.5}}
		if change != nil {
			change(&m)
		}
		return m
	}
	a, lines := judged(insight.Facts{
		Pools: []fleet.PoolStatus{
			{Pool: fleet.Pool{Name: "std"}, PerHour: 1.5, Today: 8, Alert: "over its budget"},
			{Pool: fleet.Pool{Name: "gpu", PauseCreates: true, PauseReason: "holiday"}, Problem: "no key"},
		},
		Machines: []fleet.Instance{
			machine("ok", fleet.InstanceActive, nil),
			machine("gone", fleet.InstanceGone, func(m *fleet.Instance) { m.LastError = "x" }),
			machine("held", fleet.InstanceActive, func(m *fleet.Instance) { m.Behavior, m.IdleAt = fleet.BehaviorHold, now.Add(-3*time.Hour) }),
			machine("lost", fleet.InstanceActive, func(m *fleet.Instance) { m.LostAt = now.Add(-time.Minute) }),
			machine("bad", fleet.InstanceBooting, func(m *fleet.Instance) { m.LastError = "no capacity" }),
			machine("orphan", fleet.InstanceOrphaned, nil),
		},
	})
	require.Equal(t, []string{
		"broken pool.problem gpu 1: pool gpu: its provider cannot be used: no key",
		"weak machine.error bad 1: machine bad (booting): no capacity",
		"weak machine.held held 1: machine held is held and idle for 3h0m0s: it costs 0.50 an hour",
		"weak machine.lost lost 1: the agent of machine lost is silent: it costs 0.50 an hour",
		"weak machine.orphaned orphan 1: machine orphan is ours, but of no pool that is known: it costs 0.50 an hour",
		"weak pool.budget std 1: pool std: over its budget",
		"weak pool.paused gpu 1: pool gpu is paused (it buys nothing; holiday)",
	}, lines)
	require.Equal(t, "broken: 5 machines cost 1.50 an hour, and 8.00 today.", saysOf(a, "fleet"))
}

func TestWhatIsUnknownIsToldOf(t *testing.T) {
	t.Parallel()
	a, lines := judged(insight.Facts{Unknown: map[string]string{"environments": "no answer", "fleet": "not the leader"}})
	require.Equal(t, []string{
		"broken area.unknown  1: nothing is known of environments: no answer",
		"broken area.unknown  1: nothing is known of fleet: not the leader",
	}, lines)
	require.Equal(t, "broken: Unknown: no answer", saysOf(a, "environments"))
}

// TestManyAlikeAreToldTogether says that ten thousand nodes that are down fill no list, and that the worst still comes first.
func TestManyAlikeAreToldTogether(t *testing.T) {
	t.Parallel()
	s := &state{nodes: []*drover.Node{{ID: "x", Name: "x", Status: "ready", SchedulingEligibility: "eligible"}}}
	for i := range 10_000 {
		s.nodes = append(s.nodes, &drover.Node{ID: fmt.Sprintf("%05d", i), Name: "n", Status: "down"})
	}
	a, lines := judged(insight.Facts{State: s})
	require.Len(t, lines, 6)
	require.Equal(t, "weak node.down  9995: 9995 more of the same kind", lines[5])
	require.Equal(t, "weak: 1 of 10001 nodes ready for work, 10000 away.", saysOf(a, "nodes"))
}

// TestAViewerSeesWhatTheyMayRead draws clusters and viewers: nothing of a namespace or part that a viewer may not read is in what they see,
// and what they see is a part of what everybody sees.
func TestAViewerSeesWhatTheyMayRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spaces := []string{"default", "secret-a", "secret-b"}
		s, f := &state{}, insight.Facts{Now: now}
		for i := range rapid.IntRange(0, 12).Draw(t, "n") {
			space := rapid.SampledFrom(spaces).Draw(t, "namespace")
			id := fmt.Sprintf("%s-%d", space, i)
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				s.evaluations = append(s.evaluations, &drover.Evaluation{ID: "e", JobID: id, Namespace: space, Status: "blocked"})
			case 1:
				s.deployments = append(s.deployments, &drover.Deployment{ID: "d", JobID: id, Namespace: space, Status: "paused"})
			case 2:
				f.Environments = append(f.Environments, execution.PoolStatus{Environment: id, Namespace: space, Size: 1, Queued: 1})
			}
		}
		f.State = s
		jobs := rapid.SliceOfDistinct(rapid.SampledFrom(spaces), rapid.ID[string]).Draw(t, "jobs")
		runners := rapid.SliceOfDistinct(rapid.SampledFrom(spaces), rapid.ID[string]).Draw(t, "runners")
		in := func(list []string) func(string) bool {
			return func(n string) bool { return n == "*" && len(list) > 0 || slices.Contains(list, n) }
		}
		report := insight.Judge(f)
		a := report.For(cluster.Viewer{Jobs: in(jobs), Runners: in(runners), Volumes: none})
		want := map[string]int{}
		for _, e := range s.evaluations {
			if slices.Contains(jobs, e.Namespace) {
				want["job.not_placed"]++
			}
		}
		for _, d := range s.deployments {
			if slices.Contains(jobs, d.Namespace) {
				want["deployment.paused"]++
			}
		}
		for _, e := range f.Environments {
			if slices.Contains(runners, e.Namespace) {
				want["environment.short"]++
			}
		}
		got := map[string]int{}
		for _, c := range a.Concerns {
			got[c.Code] += c.Count
			for _, space := range spaces[1:] {
				may := jobs
				if c.Area == cluster.AreaEnvironments {
					may = runners
				}
				if strings.Contains(c.Says+c.Subject+c.Namespace, space) && !slices.Contains(may, space) {
					t.Fatalf("%s is told of %s", c.Code, space)
				}
			}
		}
		if !maps.Equal(want, got) {
			t.Fatalf("want %v, got %v", want, got)
		}
		if len(insight.Judge(f).For(cluster.Viewer{Jobs: none, Runners: none, Volumes: none}).Areas) != 0 {
			t.Fatal("who may read nothing is told of areas")
		}
	})
}

func TestVolumesThatCannotBeMounted(t *testing.T) {
	t.Parallel()
	v := func(id, state, why string, since time.Duration) *volume.HostVolume {
		return &volume.HostVolume{
			ID: id, Name: "data", Namespace: "team", NodeID: "n1", State: state, StateDescription: why, ModifyTime: before(since),
		}
	}
	a, lines := judged(insight.Facts{State: &state{volumes: []*volume.HostVolume{
		v("a", volume.HostVolumeReady, "", time.Hour),
		v("b", volume.HostVolumePending, "", time.Minute),
		v("c", volume.HostVolumePending, "", time.Hour),
		v("d", volume.HostVolumeDeleting, "no such plugin", time.Second),
		v("e", volume.HostVolumeUnavailable, "its node is down", time.Second),
		v("f", volume.HostVolumeDeleting, "", time.Second),
	}}})
	require.Equal(t, []string{
		"weak volume.deleting d 1: volume data has not been deleted: no such plugin",
		"weak volume.pending c 1: volume data has not been made: node n1 has not answered",
		"weak volume.unavailable e 1: volume data cannot be mounted: its node is down",
	}, lines)
	require.Equal(t, "weak: 1 of 6 host volumes ready.", saysOf(a, cluster.AreaVolumes))
	require.Equal(t, "drover volume status -namespace team d", a.Concerns[0].Next)
}
