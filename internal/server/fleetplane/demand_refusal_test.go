package fleetplane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/fleet/learned"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/scaler"
)

// refusing is a fleet with a pool of two types, work that waits for it, and a machine that can be seen.
type refusing struct {
	*logged
	policy *fleet.Policy
}

func newRefusing(t *testing.T) *refusing {
	l := &refusing{logged: newLogged(t), policy: &fleet.Policy{
		Name: "std", NodePool: "default", Provider: "p", Zones: []string{"a"}, UserData: "#!/bin/sh",
		Types: []fleet.InstanceType{
			{Name: "t", Price: 1, Capacity: drover.Capacity{CPU: 4000, MemoryMB: 4000}},
			{Name: "u", Price: 2, Capacity: drover.Capacity{CPU: 8000, MemoryMB: 8000}},
		},
	}}
	l.policy.Canonicalize()
	l.do(&command.PutFleetPools{Pools: []*fleet.Pool{{Name: "std", Policy: l.policy}}})
	job := batch("a", "default", 2)
	job.TaskGroups[0].Tasks[0].Resources.Devices = nil
	l.do(&command.RegisterJob{Job: job, Time: 1})
	l.do(&command.UpdateEvals{Evals: blocked("a", "b1", 2)})
	return l
}

func (l *refusing) see(id, typ, template string, drivers ...string) {
	has := map[string]*drover.DriverInfo{"sandbox": {Detected: true}}
	n := &drover.Node{ID: id, Status: drover.NodeStatusReady, NodePool: "default", Drivers: has, Attributes: map[string]string{
		gate.AttributeInstance: id, gate.AttributePool: "std", gate.AttributeType: typ, gate.AttributeTemplate: template,
	}}
	for _, d := range drivers {
		n.Drivers[d] = &drover.DriverInfo{Detected: true}
	}
	l.do(&command.RegisterNode{Node: n, Time: 1})
}

func (l *refusing) decide() scaler.Output {
	waiting, _ := l.view.Demand("default", "default")
	return scaler.Decide(scaler.Input{
		Now: time.Unix(1_800_000_000, 0), Policy: l.policy, Offerings: l.policy.Offerings(), Demand: waiting, GroupUsed: map[string]int64{},
		Beliefs: learned.New(1, provider.Capabilities{}), Listed: true, Settled: true,
	})
}

func TestNothingIsBoughtForWorkThatMachinesWereSeenNotToTake(t *testing.T) {
	t.Parallel()
	l := newRefusing(t)
	require.NotEmpty(t, l.decide().Actions, "nobody knows what the machines of a script have")
	_, changed := l.view.Demand("default", "default")
	l.see("n1", "t", l.policy.Template())
	l.view.Nodes()
	select {
	case <-changed:
	default:
		t.Fatal("what was seen of a machine was not told")
	}
	out := l.decide()
	require.Empty(t, out.Actions, "no other type either: what drivers there are is said by the template")
	require.Equal(t, "needs driver raw_exec, which machines of pool std do not have", out.Waiting[0].Reason)

	l.do(&command.DeregisterNodes{IDs: []string{"n1"}, Time: 4})
	l.view.Nodes()
	require.Empty(t, l.decide().Actions, "it is known still when the machine is gone")
	l.see("n2", "u", l.policy.Template(), "raw_exec")
	out = l.decide()
	require.Len(t, out.Actions, 1)
	require.Equal(t, "u", out.Actions[0].Buys.Type, "one type has it")

	l = newRefusing(t)
	l.see("n1", "t", l.policy.Template())
	require.Empty(t, l.decide().Actions)
	l.policy.UserData += "\nprepare"
	require.NotEmpty(t, l.decide().Actions, "machines are made from something else now")
}

func TestWhatMachinesLackIsNamed(t *testing.T) {
	t.Parallel()
	l := newRefusing(t)
	job := batch("a", "default", 2)
	job.TaskGroups[0].Tasks[0].Resources.Devices = nil
	job.TaskGroups[0].Tasks[0].Driver = "sandbox"
	job.TaskGroups[0].Volumes = map[string]*drover.VolumeRequest{"data": {Type: "host", Source: "scratch"}}
	job.Constraints = []*constraint.Constraint{{LTarget: "${attr.platform.zone}", RTarget: "a"}}
	l.do(&command.RegisterJob{Job: job, Time: 1})
	require.NotEmpty(t, l.decide().Actions)
	l.see("n1", "t", l.policy.Template())
	require.Equal(t, "u", l.decide().Actions[0].Buys.Type, "another type may have the volume")
	l.see("n2", "u", l.policy.Template())
	out := l.decide()
	require.Empty(t, out.Actions)
	require.Equal(t, "needs host volume scratch, which machines of pool std do not have", out.Waiting[0].Reason)
}
