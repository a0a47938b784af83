package trial

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// greedy are programs that want all there is.
func greedy() []program {
	return []program{
		{name: "fork bomb", held: fmt.Sprintf("at most %d processes, all of them killed at the end of its time", pids), run: forkBomb},
		{name: "memory bomb", held: "killed at the limit, and told as out of memory", run: memoryBomb},
		{name: "disk filler", held: "all that it can write to is one bounded place", run: diskFiller},
		{name: "endless output", held: "cut at the limit with a mark, and killed", run: endlessOutput},
	}
}

// forkBomb starts processes without end. It must be ended by its time limit, and the grace of five seconds is for a busy
// machine.
func forkBomb(ctx context.Context, t *trial) (string, State, error) {
	r, err := t.evil.run(ctx, false, "f() { f | f & }; (f) & while :; do :; done", drover.Limits{Wall: shortWall, Pids: pids})
	if err != nil {
		return "", Contained, err
	}
	if r.receipt.ExitCode == 0 || r.receipt.Wall > shortWall+5*time.Second {
		return fmt.Sprintf("it ran for %v and ended with %d (%s)", r.receipt.Wall, r.receipt.ExitCode, r.receipt.Cause), Contained, nil
	}
	return t.bombFragments(ctx)
}

// bombFragments counts what a bomb left of itself.
func (t *trial) bombFragments(ctx context.Context) (string, State, error) {
	r, err := t.evil.run(ctx, true, "ls -d /proc/[0-9]* | wc -l", drover.Limits{})
	var n int
	if _, scanErr := fmt.Sscan(r.stdout, &n); err == nil && scanErr == nil && n > 10 {
		return fmt.Sprintf("%d processes survived it", n), Contained, nil
	}
	return "", t.limited(), err
}

// memoryBomb lets tail keep an endless line in memory. Twice the limit is the bound, because without control groups
// memory is looked at only now and then.
func memoryBomb(ctx context.Context, t *trial) (string, State, error) {
	r, err := t.evil.run(ctx, false, "exec tail /dev/zero", drover.Limits{Wall: patience / 2})
	if err != nil {
		return "", Contained, err
	}
	most := 2 * t.cfg.MemoryMB << 20
	switch {
	case r.receipt.ExitCode == 0:
		return "it ended as if nothing had happened", Contained, nil
	case r.receipt.PeakMemory > most:
		return fmt.Sprintf("it had %d MB of %d", r.receipt.PeakMemory>>20, t.cfg.MemoryMB), Contained, nil
	case r.receipt.Cause != execution.CauseOOM:
		return "", Weak, nil
	}
	return "", t.limited(), nil
}

// diskFiller keeps more than it may in each place for longer than a driver may look away.
func diskFiller(ctx context.Context, t *trial) (string, State, error) {
	r, err := t.evil.run(ctx, true, fmt.Sprintf(`
for d in /tmp /var/tmp /dev/shm /root /alloc /local /secrets /home/user /etc /opt; do
  [ -d $d ] || continue
  head -c %d /dev/zero > $d/fill 2>/dev/null && echo "$d took all" && sleep 8
  rm -f $d/fill
done 2>/dev/null; true`, 2*diskMB<<20), drover.Limits{Wall: patience / 2})
	return got(r.stdout), Contained, err
}

// endlessOutput prints lines without end. The agent must cut them at the limit, mark the receipt as truncated, and add
// nothing of its own to the output.
func endlessOutput(ctx context.Context, t *trial) (string, State, error) {
	const most = 16 << 10
	r, err := t.evil.run(ctx, false, "exec yes", drover.Limits{OutputBytes: most, Wall: shortWall})
	switch {
	case err != nil:
	case len(r.stdout) > most || !r.receipt.Truncated:
		return fmt.Sprintf("it delivered %d bytes of %d", len(r.stdout), most), Contained, nil
	case r.receipt.ExitCode == 0 || strings.Trim(r.stdout, "y\n") != "":
		return "it was not told as cut off", Contained, nil
	}
	return "", Contained, err
}
