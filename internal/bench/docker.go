package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

// dockerExec compares executions in a docker container, through the agent's API, with docker exec in the same container.
func (b *bench) dockerExec(ctx context.Context) error {
	lack, err := b.lacks(ctx, "docker")
	if err != nil || lack != "" {
		fmt.Fprintln(b.app.Err, "docker-exec is left out:", lack)
		return err
	}
	b.driver, b.image = "docker", cmp.Or(b.image, "drover-test/busybox:1") // as scripts/docker makes it
	defer func() { b.driver, b.image = "", "" }()
	if err := b.environment(ctx, "bench", 1); err != nil {
		return err
	}
	r, err := b.client.Claim(ctx, execution.ClaimRequest{Environment: "bench", Wait: time.Minute})
	if err != nil {
		return err
	}
	one, err := b.inTurn(ctx, r.ID, b.n(400))
	if err != nil {
		return err
	}
	many, _, err := b.atOnce(ctx, r.ID, 8, b.n(400))
	if err != nil {
		return err
	}
	b.report("docker: execution of /bin/true to exit p50", percentile(one, 0.5), "ms", "≤ 5", "docker exec: below")
	b.report("docker: the same p99, 8 at once", percentile(many, 0.99), "ms", "", "")
	if err := b.fifty(ctx, r.ID); err != nil {
		return err
	}
	return b.beside(ctx, r.AllocID)
}

// fifty compares fifty executions at once with fifty in turn: cpu is cpu, so that waiting is all that can be won or lost.
func (b *bench) fifty(ctx context.Context, runner string) error {
	const n = 50
	begin := b.now()
	if _, err := b.inTurn(ctx, runner, n); err != nil {
		return err
	}
	turn := b.now().Sub(begin)
	_, once, err := b.atOnce(ctx, runner, n, n)
	if err != nil {
		return err
	}
	b.report("docker: 50 executions at once, in times of 50 in turn", once.Seconds()/turn.Seconds(), "", "≤ 1", "")
	return nil
}

// inTurn runs /bin/true one after the other.
func (b *bench) inTurn(ctx context.Context, runner string, n int) ([]time.Duration, error) {
	list := make([]time.Duration, 0, n)
	for range n {
		t, err := b.execute(ctx, runner, "/bin/true")
		if err != nil {
			return nil, err
		}
		list = append(list, t.end)
	}
	return list, nil
}

// atOnce runs it n times by that many at once, and tells how long all took.
func (b *bench) atOnce(ctx context.Context, runner string, width, n int) ([]time.Duration, time.Duration, error) {
	list, errs := make([]time.Duration, n), make([]error, n)
	// A filled and closed channel hands out the work, so that no worker waits for another one.
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	begin := b.now()
	var wg sync.WaitGroup
	for range width {
		wg.Go(func() { // ends with the work
			for i := range next {
				var t timing
				t, errs[i] = b.execute(ctx, runner, "/bin/true")
				list[i] = t.end
			}
		})
	}
	wg.Wait()
	return list, b.now().Sub(begin), errors.Join(errs...)
}

// beside runs /bin/true by docker's own command line.
func (b *bench) beside(ctx context.Context, allocID string) error {
	out, err := exec.CommandContext(ctx, "docker", "ps", "-q", "--filter", "label=com.hashicorp.nomad.alloc_id="+allocID).Output()
	// The comparison runs in the very container that was measured before, found by the label that Nomad's driver gives
	// too.
	container := strings.TrimSpace(string(out))
	if err != nil || container == "" {
		fmt.Fprintln(b.app.Err, "docker exec is not measured: no docker command that finds the container:", err)
		return nil
	}
	var list []time.Duration
	for range max(10, b.n(100)) {
		begin := b.now()
		if err := exec.CommandContext(ctx, "docker", "exec", container, "/bin/true").Run(); err != nil {
			return fmt.Errorf("docker exec: %w", err)
		}
		list = append(list, b.now().Sub(begin))
	}
	b.report("docker exec of /bin/true in the same container p50", percentile(list, 0.5), "ms", "", "")
	return nil
}

// taskStats measures what sampling every task each second costs, as the difference to not doing it.
func (b *bench) taskStats(ctx context.Context) error {
	n := b.n(1000)
	measure := func(telemetry string) (cpu float64, err error) {
		b.config = telemetry
		defer func() { b.config = "" }()
		err = b.with(ctx, func(ctx context.Context) error {
			if err := b.register(ctx, sleepers("stats", n)); err != nil {
				return err
			}
			if err := b.await(ctx, "stats", func(s drover.TaskGroupSummary) bool { return s.Running == n }); err != nil {
				return err
			}
			clock.Sleep(ctx, clock.Wall{}, 12*time.Second) // its deployment ends, health is reported
			pid := b.agent.Process.Pid
			before, begin := cpuSeconds(pid), b.now()
			clock.Sleep(ctx, clock.Wall{}, 15*time.Second)
			cpu = 100 * (cpuSeconds(pid) - before) / b.now().Sub(begin).Seconds()
			return nil
		})
		return cpu, err
	}
	// Without the sampling first: the difference is what it costs.
	off, err := measure("")
	if err != nil {
		return err
	}
	on, err := measure("telemetry {\n  publish_allocation_metrics = true\n  collection_interval = \"1s\"\n}\n")
	if err != nil {
		return err
	}
	b.report(fmt.Sprintf("stats of %d tasks every second: CPU of the agent", n), on-off, "% of a core", "≤ 5",
		"Nomad: a docker request a task a second")
	return nil
}
