package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

// sandbox measures executions in one sandbox through the agent's API, then what 500 idle ones cost, everything counted.
func (b *bench) sandbox(ctx context.Context) error {
	if err := b.environment(ctx, "one", 1); err != nil {
		return err
	}
	r, err := b.client.Claim(ctx, execution.ClaimRequest{Environment: "one", Wait: time.Minute})
	if err != nil {
		return err
	}
	one, err := b.inTurn(ctx, r.ID, b.n(1000))
	if err != nil {
		return err
	}
	many, _, err := b.atOnce(ctx, r.ID, 8, b.n(1000))
	if err != nil {
		return err
	}
	b.report("sandbox: execution of /bin/true to exit p50", percentile(one, 0.5), "ms", "≤ 2", "docker exec 84")
	b.report("sandbox: the same p99, 8 at once", percentile(many, 0.99), "ms", "≤ 5", "")
	if err := b.client.Release(ctx, r.ID); err != nil {
		return err
	}
	return b.idleSandboxes(ctx, b.n(500))
}

// idleSandboxes counts private memory of the supervisors and what the agent grew by.
func (b *bench) idleSandboxes(ctx context.Context, n int) error {
	// The agent's memory before is taken off, so that the figure is what the sandboxes added.
	agent, others := privateMB([]int{b.agent.Process.Pid}), len(b.supervisors(ctx))
	if err := b.environment(ctx, "idle", n); err != nil {
		return err
	}
	clock.Sleep(ctx, clock.Wall{}, 5*time.Second) // what is given back after the start is given back
	b.report(fmt.Sprintf("idle %d sandboxes: CPU of agent and supervisors", n), b.cpuOver(ctx, 20*time.Second), "% of a core", "≤ 1",
		"Poseidon 55 with 25")
	pids := b.supervisors(ctx)
	if len(pids) < n {
		return drover.Errorf(drover.Internal, "%d of %d sandboxes are there", len(pids)-others, n)
	}
	all := privateMB(pids)*float64(len(pids)) + privateMB([]int{b.agent.Process.Pid}) - agent
	b.report(fmt.Sprintf("idle %d sandboxes: private memory each, agent's growth included", n), all/float64(n), "MB", "≤ 1.2",
		"Nomad 37 a task")
	return nil
}
