package allocrunner_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/checks"
	"github.com/drover-project/drover/internal/servicecheck"
	"github.com/drover-project/drover/service"
)

// switched answers as it is set.
type switched struct {
	ok   atomic.Bool
	last atomic.Pointer[checks.Check]
}

func (s *switched) Probe(_ context.Context, c *checks.Check) (int, string, bool) {
	s.last.Store(c)
	return 0, "", s.ok.Load()
}

// checked is a bundle whose task has a service with a check.
func checked(t *testing.T, check servicecheck.Check, healthCheck string) (*bundle, *switched) {
	t.Helper()
	main := task("main", "", false)
	main.Services = []*service.Service{{Name: "web", PortLabel: "8080", Checks: []map[string]any{check.Map()}}}
	main.RestartPolicy = &drover.RestartPolicy{
		Attempts: new(1), Interval: new(time.Hour), Delay: new(time.Second), Mode: drover.RestartModeFail,
	}
	j := job("service", main)
	j.TaskGroups[0].Update.HealthCheck = healthCheck
	b := newBundle(t, j)
	b.alloc.DeploymentID = "d1"
	p := &switched{}
	b.cfg.Prober = p
	b.cfg.Shared.Node = func() *drover.Node {
		return &drover.Node{ID: "n", Attributes: map[string]string{"unique.network.ip-address": "192.0.2.1"}}
	}
	return b, p
}

// An allocation is healthy when its checks have passed for min_healthy_time, not when its tasks run.
func TestChecksDecideHealth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, p := checked(t, servicecheck.Check{Type: "http", Path: "/up?x=1", Interval: 5 * time.Second, Header: map[string][]string{
			"A": {"${NOMAD_ALLOC_INDEX}"},
		}}, "checks")
		b.start()
		b.sleep(time.Minute)
		require.Equal(t, "unknown", b.healthy(), "they do not pass")
		require.Equal(t, "http://192.0.2.1:8080/up?x=1", p.last.Load().URL)
		require.Equal(t, []string{"0"}, p.last.Load().Header["A"])
		p.ok.Store(true)
		b.sleep(6 * time.Second)
		p.ok.Store(false)
		b.sleep(6 * time.Second)
		p.ok.Store(true)
		b.sleep(9 * time.Second)
		require.Equal(t, "unknown", b.healthy(), "not for long enough since they failed")
		b.sleep(6 * time.Second)
		require.Equal(t, "healthy", b.healthy())
		require.Len(t, b.runner.CheckStatuses(), 1)
		b.stop()
		require.Empty(t, b.runner.CheckStatuses())
	})
}

func TestChecksThatNeverPassAreUnhealthy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, _ := checked(t, servicecheck.Check{Type: "tcp"}, "checks")
		b.start()
		b.sleep(5*time.Minute + time.Second)
		require.Equal(t, "unhealthy", b.healthy())
		require.Contains(t, b.events("main"), drover.TaskAllocUnhealthy)
	})
}

// While a task is restarted because its check fails, nothing is checked. That is not to be well.
func TestCheckRestartIsNotHealth(t *testing.T) {
	for _, whose := range []string{"task", "group"} {
		t.Run(whose, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b, _ := checked(t, servicecheck.Check{Type: "tcp", Interval: 5 * time.Second, CheckRestart: &service.CheckRestart{Limit: 5}}, "checks")
				g := b.alloc.Job.TaskGroups[0]
				if whose == "group" {
					g.Services, g.Tasks[0].Services = g.Tasks[0].Services, nil
				}
				b.start()
				b.sleep(time.Minute)
				require.Equal(t, "unhealthy", b.healthy(), "it was restarted once, and failed")
				for _, u := range b.told() {
					s := u.DeploymentStatus
					require.False(t, s != nil && s.Healthy != nil && *s.Healthy, "%v", u.TaskStates["main"].Events)
				}
			})
		})
	}
}

func TestChecksThatDoNotDecide(t *testing.T) {
	for name, c := range map[string]struct {
		check servicecheck.Check
		rule  string
	}{
		"by task states": {servicecheck.Check{Type: "tcp"}, "task_states"},
		"ignored":        {servicecheck.Check{Type: "tcp", OnUpdate: service.OnUpdateIgnore}, "checks"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b, _ := checked(t, c.check, c.rule)
				b.start()
				b.sleep(11 * time.Second)
				require.Equal(t, "healthy", b.healthy())
			})
		})
	}
}

// A task whose check fails so often in a row is restarted, which counts against its policy.
func TestCheckRestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, p := checked(t, servicecheck.Check{Name: "up", Type: "tcp", Interval: 5 * time.Second, CheckRestart: &service.CheckRestart{
			Limit: 3, Grace: new(20 * time.Second),
		}}, "manual")
		p.ok.Store(true)
		b.start()
		b.sleep(time.Minute)
		p.ok.Store(false)
		b.sleep(11 * time.Second)
		require.Equal(t, "start main", b.journal(), "twice is not enough")
		p.ok.Store(true)
		b.sleep(5 * time.Second)
		p.ok.Store(false)
		b.sleep(11 * time.Second)
		require.Equal(t, "start main", b.journal(), "in a row")
		b.sleep(15 * time.Second)
		require.Equal(t, uint64(1), b.last().TaskStates["main"].Restarts)
		require.Contains(t, b.events("main"), drover.TaskRestartSignal)
		b.sleep(15 * time.Second)
		require.Equal(t, drover.TaskStateRunning, b.last().TaskStates["main"].State, "the grace of the new start")
		b.sleep(time.Minute)
		require.Equal(t, drover.AllocClientFailed, b.last().ClientStatus, "the policy allows one restart")
	})
}

// flapping passes every second time, and counts.
type flapping struct{ probes atomic.Int64 }

func (f *flapping) Probe(context.Context, *checks.Check) (int, string, bool) {
	n := f.probes.Add(1)
	return 0, fmt.Sprintf("\n try %d\nand more", n), n%2 == 0
}

// A check that fails every second time decides no rollout, and restarts nothing that wants two failures in a row. If one is enough, the
// restarts are bounded by the task's policy, and each says why. However long it goes on, no probe is made beside its interval, no more than
// one report is made of each, and the task's events do not grow.
func TestAFlappingCheck(t *testing.T) {
	for limit, restarts := range map[int]uint64{2: 0, 1: 1} {
		t.Run(fmt.Sprintf("limit %d", limit), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b, _ := checked(t, servicecheck.Check{
					Name: "up", Type: "tcp", Interval: 5 * time.Second, CheckRestart: &service.CheckRestart{Limit: limit, Grace: new(time.Second)},
				}, "checks")
				f := &flapping{}
				b.cfg.Prober = f
				b.start()
				b.sleep(time.Hour)
				require.Equal(t, "unhealthy", b.healthy(), "it never passed for min_healthy_time")
				require.LessOrEqual(t, f.probes.Load(), int64(time.Hour/(5*time.Second)+2))
				require.LessOrEqual(t, len(b.told()), int(f.probes.Load())+12)
				state := b.last().TaskStates["main"]
				require.Equal(t, restarts, state.Restarts)
				require.LessOrEqual(t, len(state.Events), drover.MaxTaskEvents)
				if restarts == 0 {
					require.Equal(t, drover.TaskStateRunning, state.State)
					return
				}
				require.Equal(t, drover.AllocClientFailed, b.last().ClientStatus, "the policy allows one restart")
				var said []string
				for _, e := range state.Events {
					if e.Type == drover.TaskRestartSignal {
						said = append(said, e.DisplayMessage)
					}
				}
				require.Equal(t, []string{`healthcheck: check "up" unhealthy: try 3`, `healthcheck: check "up" unhealthy: try 5`}, said)
			})
		})
	}
}

// The node tells which services have a check that does not pass, from before the first result on.
func TestFailingServicesAreTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		check := servicecheck.Check{Name: "up", Type: "tcp", Interval: 5 * time.Second, Timeout: time.Second, OnUpdate: service.OnUpdateIgnore}
		b, p := checked(t, check, "checks")
		b.start()
		b.sleep(6 * time.Second)
		require.Equal(t, []string{"main/web/8080"}, b.last().FailingServices)
		for _, u := range b.told() {
			if u.TaskStates["main"].State == drover.TaskStateRunning {
				require.Equal(t, []string{"main/web/8080"}, u.FailingServices, "it is never well before it was checked")
			}
		}
		p.ok.Store(true)
		b.sleep(5 * time.Second)
		require.Empty(t, b.last().FailingServices)
		told := len(b.told())
		b.sleep(time.Minute)
		require.Len(t, b.told(), told, "what stays is not told again")
		p.ok.Store(false)
		b.sleep(5 * time.Second)
		require.Equal(t, []string{"main/web/8080"}, b.last().FailingServices)
	})
}

// A script runs in a task of its own driver, once that runs; what its driver says is what the check says.
func TestScriptCheck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, p := checked(t, servicecheck.Check{Name: "s", Type: "script", Command: "true", Interval: time.Second, Timeout: time.Second}, "checks")
		p.ok.Store(true)
		b.start()
		b.sleep(5 * time.Second)
		require.Nil(t, p.last.Load(), "it is not carried out over the network")
		require.Equal(t, "unknown", b.healthy())
		for _, s := range b.runner.CheckStatuses() {
			require.Equal(t, service.CheckFailure, s.Status)
			require.Equal(t, "nomad: the driver of task main cannot run commands in it", s.Output)
		}
		require.Len(t, b.runner.CheckStatuses(), 1)
	})
}
