package agent

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cloud"
)

// someCloud answers after a while.
type someCloud struct {
	after time.Duration
	err   error
}

func (c someCloud) Run(ctx context.Context, tell func(cloud.Found)) error {
	if clock.Sleep(ctx, clock.Wall{}, c.after) && c.err == nil {
		tell(cloud.Found{
			Attributes: map[string]string{"platform.aws.instance-type": "m5.large", "unique.platform.aws.instance-id": "i-1"},
			Links:      map[string]string{"aws.ec2": "a.i-1"},
		})
	}
	return c.err
}

// The node registers at once, and again when its cloud has answered; what it told stays when a driver changes.
func TestTheCloudsAnswerIsRegisteredLater(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.clouds = someCloud{after: time.Minute}
		b.start()
		registered, _ := b.control.counts()
		require.Equal(t, 1, registered)
		before := b.agent.Node()
		require.NotContains(t, before.Attributes, "platform.aws.instance-type")
		sleep(61 * time.Second)
		registered, _ = b.control.counts()
		require.Equal(t, 2, registered)
		n := b.control.node
		require.Equal(t, "m5.large", n.Attributes["platform.aws.instance-type"])
		require.Equal(t, map[string]string{"aws.ec2": "a.i-1"}, n.Links)
		require.NotEqual(t, before.ComputedClass, n.ComputedClass, "jobs can ask for the type")
		require.NotContains(t, before.Attributes, "platform.aws.instance-type", "a node that is read is not changed")
		b.agent.amend(func(n *drover.Node) { n.Drivers = map[string]*drover.DriverInfo{} })
		require.True(t, b.agent.lookAgain(t.Context()))
		require.Equal(t, "m5.large", b.agent.Node().Attributes["platform.aws.instance-type"])
	})
}

// An agent that starts again with allocations registers with what its cloud tells, unless that takes too long: by the constraints of their
// jobs servers would stop them else.
func TestAnAgentThatStartsAgainRegistersWithItsCloud(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.clouds = someCloud{}
		b.start()
		b.control.assign(b.alloc(1, "system"))
		sleep(time.Second)
		require.NotNil(t, b.world.Running("t1"))
		for after, knows := range map[time.Duration]bool{cloud.Wait / 2: true, 2 * cloud.Wait: false} {
			b.leave()
			before, _ := b.control.counts()
			b.clouds = someCloud{after: after}
			b.start()
			sleep(cloud.Wait + time.Second)
			registered, _ := b.control.counts()
			require.Greater(t, registered, before)
			b.control.mu.Lock()
			for _, n := range b.control.nodes[before:] {
				require.Equal(t, knows, n.Attributes["platform.aws.instance-type"] != "", "after %s", after)
			}
			b.control.mu.Unlock()
			sleep(2 * cloud.Wait)
			b.control.mu.Lock()
			require.Equal(t, "m5.large", b.control.node.Attributes["platform.aws.instance-type"])
			b.control.mu.Unlock()
		}
	})
}

// An agent whose configuration says so ends if its cloud does not answer.
func TestTheAgentEndsWithoutItsCloud(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.clouds = someCloud{after: time.Second, err: errors.New("no answer")}
		b.fails = "client.fingerprint: exit_on_failure is set, and no answer"
		b.start()
		sleep(2 * time.Second)
		select {
		case <-b.ran:
		default:
			t.Error("the agent goes on")
		}
	})
}

type someMachine struct {
	found atomic.Pointer[map[string]string]
}

func (m *someMachine) On(_ context.Context, attributes map[string]string) map[string]string {
	out := maps.Clone(attributes)
	maps.Copy(out, *m.found.Load())
	return out
}

// What a machine has is registered at once, and again only when it changed; it makes the node of no other class.
func TestWhatAMachineHasIsRegistered(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		m := &someMachine{}
		m.found.Store(&map[string]string{"unique.examined.kernel": "ok"})
		b.machine = m
		b.start()
		before := b.agent.Node()
		require.Equal(t, "ok", b.control.node.Attributes["unique.examined.kernel"])
		require.False(t, b.agent.lookAtMachine(t.Context()))
		sleep(fingerprintWait + time.Second)
		registered, _ := b.control.counts()
		require.Equal(t, 1, registered)
		m.found.Store(&map[string]string{"unique.examined.kernel": "broken: old"})
		sleep(fingerprintWait + time.Second)
		registered, _ = b.control.counts()
		require.Equal(t, 2, registered)
		require.Equal(t, "broken: old", b.control.node.Attributes["unique.examined.kernel"])
		require.Equal(t, before.ComputedClass, b.control.node.ComputedClass)
	})
}
