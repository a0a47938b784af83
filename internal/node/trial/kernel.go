package trial

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// hasOwnKernel reports whether the guest runs on another kernel than the machine's: gVisor's, or a virtual machine's. Its
// files, and its first process, are then nobody else's.
func (g *guest) hasOwnKernel(ctx context.Context) bool {
	machine, err := os.ReadFile("/proc/version")
	if err != nil {
		return false
	}
	r, err := g.run(ctx, false, "cat /proc/version", drover.Limits{})
	return err == nil && strings.HasPrefix(r.stdout, "Linux") && r.stdout != string(machine)
}

// restarting bounds the start of another guest.
const restarting = time.Minute

// fallen judges that the guest, or its neighbour, no longer answers. One that ended only itself, with a kernel of its own,
// did not get anywhere: it is given up for another one.
func (t *trial) fallen(ctx context.Context, says string) (State, string) {
	ctx, cancel := t.cfg.Clock.WithTimeout(context.WithoutCancel(ctx), restarting)
	defer cancel()
	// A neighbour that no longer answers was hurt. Without a kernel of its own, the guest broke what it shares with
	// others.
	if r, err := t.neighbour.run(ctx, false, "echo alive", drover.Limits{}); !t.ownKernel || err != nil || r.stdout != "alive\n" {
		return Escaped, says
	}
	if err := t.another(ctx); err != nil {
		return Escaped, says + "; and no other can be started: " + err.Error()
	}
	return Weak, "it ended its own guest, with the kernel that this has of its own; its neighbour did not notice"
}

// another takes the place of a guest that has ended.
func (t *trial) another(ctx context.Context) error {
	t.evil.destroy(ctx)
	t.lives++
	next, err := t.start(ctx, "evil"+strings.Repeat("r", t.lives))
	if err == nil {
		t.evil = next
	}
	return err
}

// ended judges a guest that no longer answers. Its driver may have ended it for what it took, which is a way to hold it, as
// long as its neighbour did not notice.
func (t *trial) ended(ctx context.Context) (says string, held bool) {
	ctx, cancel := t.cfg.Clock.WithTimeout(context.WithoutCancel(ctx), restarting)
	defer cancel()
	exit, err := t.evil.h.Wait(ctx)
	if err != nil || drover.CodeOf(exit.Err) != drover.Exhausted {
		return "", false
	}
	if r, err := t.neighbour.run(ctx, false, "echo alive", drover.Limits{}); err != nil || r.stdout != "alive\n" {
		return "", false
	}
	return "ended: " + exit.Err.Error(), t.another(ctx) == nil
}
