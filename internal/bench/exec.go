package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/env"
)

// environment makes one with a warm pool.
func (b *bench) environment(ctx context.Context, id string, size int) error {
	_, full, err := b.client.PutEnvironmentAndWait(ctx, execution.Environment{
		ID: id, Image: cmp.Or(b.image, "host"), Driver: b.driver, PoolSize: size, CPU: 10, MemoryMB: 16, MemoryMaxMB: 256,
	}, 2*time.Minute)
	if err != nil || full {
		return err
	}
	return env.AwaitWarm(ctx, b.client, id, size) // or why not
}

// timing is how long one execution took to its first byte and to its end, and what it printed.
type timing struct {
	first, end time.Duration
	out        int64
	text       string
	receipt    *execution.Receipt
}

// execute runs a command over a websocket.
func (b *bench) execute(ctx context.Context, runner string, argv ...string) (timing, error) {
	return b.follow(ctx, runner, func(execution.Frame) error { return nil }, argv)
}

// follow runs a command over a websocket and has each frame seen.
func (b *bench) follow(ctx context.Context, runner string, see func(execution.Frame) error, argv []string) (t timing, err error) {
	begin := b.now()
	s, err := b.client.Execute(ctx, runner, execution.Request{Spec: execution.Spec{Argv: argv}})
	if err != nil {
		return t, err
	}
	defer func() { _ = s.Close() }()
	for {
		f, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return t, err
		}
		if err := see(f); err != nil {
			return t, err
		}
		if len(f.Data) > 0 {
			if t.first == 0 {
				t.first = b.now().Sub(begin)
			}
			t.out += int64(len(f.Data))
			if len(t.text) < 64 {
				t.text += string(f.Data)
			}
		}
		if f.Receipt != nil {
			t.receipt, t.end = f.Receipt, b.now().Sub(begin)
		}
	}
}

// pool is the size of a pool that is full-sized where runners start fast.
func (b *bench) pool(full int) int {
	if b.few {
		return full / 10
	}
	return full
}

// executions measures one at a time: claim, one file in, first byte, exit.
func (b *bench) executions(ctx context.Context) error {
	size, ready := 25, 10
	if b.few {
		size, ready = 5, 1
	}
	if err := b.environment(ctx, "bench", size); err != nil {
		return err
	}
	var claims, copies, firsts, exits []time.Duration
	for range b.n(400) {
		if err := env.AwaitWarm(ctx, b.client, "bench", ready); err != nil {
			return err
		}
		begin := b.now()
		r, err := b.client.Claim(ctx, execution.ClaimRequest{Environment: "bench"})
		if err != nil {
			return err
		}
		claims = append(claims, b.now().Sub(begin))
		begin = b.now()
		if err := b.client.ChangeFiles(ctx, r.ID, execution.FileChange{Path: "a.txt", Write: true, Data: []byte("hello")}); err != nil {
			return err
		}
		copies = append(copies, b.now().Sub(begin))
		for range 3 {
			t, err := b.execute(ctx, r.ID, "echo", "hi")
			if err != nil {
				return err
			}
			firsts, exits = append(firsts, t.first), append(exits, t.end)
		}
		if err := b.client.Release(ctx, r.ID); err != nil {
			return err
		}
	}
	b.report("claim p50", percentile(claims, 0.5), "ms", "≤ 0.3 (first step 1)", "Poseidon 0.7")
	b.report("claim p99", percentile(claims, 0.99), "ms", "≤ 2", "")
	b.report("one file in p50", percentile(copies, 0.5), "ms", "≤ 2", "Poseidon 269")
	b.report("execution to first byte p50", percentile(firsts, 0.5), "ms", "≤ 2 (first step 10)",
		"Poseidon 198, docker exec 84, Nomad exec 5.6")
	b.report("execution to exit p50", percentile(exits, 0.5), "ms", "≤ 3", "")
	b.report("execution to exit p99", percentile(exits, 0.99), "ms", "", "")
	return nil
}

// cycles measures whole cycles, 8 at once: claim, copy, execute, release.
func (b *bench) cycles(ctx context.Context) error {
	if err := b.environment(ctx, "bench", b.pool(100)); err != nil {
		return err
	}
	total := b.cycleCount()
	before := b.spent()
	took, lost, err := b.cycled(ctx, total)
	if err != nil {
		return err
	}
	b.report("whole cycles, 8 at once", float64(total)/took.Minutes(), "a minute", "≥ 10,000 (first step 2,000)", "Poseidon 125")
	b.report("cycles that lost output", float64(lost), fmt.Sprintf("of %d", total), "0", "Poseidon 2 %")
	b.reportSpent(before, total)
	return nil
}

// cycleCount is how many cycles are measured.
func (b *bench) cycleCount() int64 {
	if b.few && b.repeat == 0 {
		return 40
	}
	return int64(cmp.Or(b.repeat, b.n(10_000)))
}

// cycled goes through so many cycles, 8 at once, and says how long that took and how many lost output.
func (b *bench) cycled(ctx context.Context, total int64) (took time.Duration, outputs int64, err error) {
	var done, lost atomic.Int64
	var mu sync.Mutex
	var failure error
	var wg sync.WaitGroup
	begin := b.now()
	for range 8 {
		wg.Go(func() { // ends after its share, or at the first failure
			for n := done.Add(1); n <= total; n = done.Add(1) {
				if n%cyclesTold == 0 {
					fmt.Fprintf(b.app.Err, "%d cycles, %d lost output\n", n, lost.Load())
				}
				ok, err := b.cycle(ctx)
				if err != nil {
					mu.Lock()
					failure = errors.Join(failure, err)
					mu.Unlock()
					return
				}
				if !ok {
					lost.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return b.now().Sub(begin), lost.Load(), failure
}

// cyclesTold is after how many cycles their number is told.
const cyclesTold = 10_000

// cycle claims a runner, changes a file, runs a command, reads its output and releases the runner, as a user of
// Poseidon does. ok is false if the command's output was not what it should be.
func (b *bench) cycle(ctx context.Context) (ok bool, err error) {
	r, err := b.client.Claim(ctx, execution.ClaimRequest{Environment: "bench", Wait: 30 * time.Second})
	if err != nil {
		return false, err
	}
	if err := b.client.ChangeFiles(ctx, r.ID, execution.FileChange{Path: "a.txt", Write: true, Data: []byte("hello")}); err != nil {
		return false, err
	}
	// Every runner prints its own id, so that output which went to another cycle is found.
	t, err := b.execute(ctx, r.ID, "echo", r.ID)
	if err != nil {
		return false, err
	}
	ok = t.text == r.ID+"\n" && t.receipt != nil && t.receipt.ExitCode == 0
	if !ok {
		fmt.Fprintf(b.app.Err, "lost output: runner %s printed %q, its receipt is %+v\n", r.ID, t.text, t.receipt)
	}
	return ok, b.client.Release(ctx, r.ID)
}

// fill measures how fast a pool comes up.
func (b *bench) fill(ctx context.Context) error {
	if err := b.environment(ctx, "first", 1); err != nil { // the image is prepared once
		return err
	}
	begin, size := b.now(), b.pool(100)
	if err := b.environment(ctx, "bench", size); err != nil {
		return err
	}
	took := b.now().Sub(begin)
	b.report(fmt.Sprintf("pool of %d filled", size), took.Seconds(), "s", "≤ 0.7", "")
	b.report("warm runners filled", float64(size)/took.Seconds(), "a second", "≥ 200", "Poseidon on docker 1.6")
	return nil
}

// burst claims a whole pool at once and runs something in each.
func (b *bench) burst(ctx context.Context) error {
	n := b.pool(100)
	if err := b.environment(ctx, "bench", n); err != nil {
		return err
	}
	firsts := make([]time.Duration, n)
	// The time to the first byte begins with the claim, as a user waits for both.
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			begin := b.now()
			r, err := b.client.Claim(ctx, execution.ClaimRequest{Environment: "bench", Wait: 10 * time.Second})
			if err != nil {
				errs[i] = err
				return
			}
			claimed := b.now().Sub(begin)
			t, err := b.execute(ctx, r.ID, "echo", "hi")
			firsts[i], errs[i] = claimed+t.first, err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	b.report(fmt.Sprintf("burst of %d claims, last first byte", n), percentile(firsts, 1), "ms", "≤ 150", "")
	return nil
}

// output measures bytes through one execution, each of them compared.
func (b *bench) output(ctx context.Context) error {
	if err := b.environment(ctx, "bench", 2); err != nil {
		return err
	}
	r, err := b.client.Claim(ctx, execution.ClaimRequest{Environment: "bench"})
	if err != nil {
		return err
	}
	const size, times = 4 << 20, 64
	block := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(block) // never fails
	if err := b.client.WriteFile(ctx, r.ID, execution.FileChange{Path: "block"}, bytes.NewReader(block)); err != nil {
		return err
	}
	twice := append(block, block...) // a frame may go over the end of a block
	begin := b.now()
	t, err := b.follow(ctx, r.ID, func(f execution.Frame) error {
		if at := f.Offset % size; !bytes.Equal(f.Data, twice[at:at+int64(len(f.Data))]) {
			return drover.Errorf(drover.Internal, "stream %d differs from what was written, in the %d bytes at %d", f.Stream, len(f.Data), f.Offset)
		}
		return nil
	}, append([]string{"cat"}, slices.Repeat([]string{"block"}, times)...))
	if err != nil {
		return err
	}
	took := b.now().Sub(begin)
	if t.out != times*size || t.receipt == nil || t.receipt.StdoutBytes != times*size {
		return drover.Errorf(drover.Internal, "got %d of %d bytes", t.out, times*size)
	}
	b.report("bytes through one execution", float64(t.out)/1e6/took.Seconds(), "MB/s", "≥ 200", "Nomad 35, often cut")
	return nil
}
