package loopback

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
)

const lookAgain = 5 * time.Millisecond

// Destroy implements provider.Provider: when it returns nil, nothing of the machine runs.
func (p *Provider) Destroy(ctx context.Context, id string) error {
	var r *record
	err := p.locked(ctx, func() (err error) {
		if r, err = p.read(id); err != nil {
			return err
		}
		if !r.EndedAt.IsZero() && !r.Dying {
			return notFound(id)
		}
		return p.mark(r)
	})
	if err != nil {
		return err
	}
	return p.finish(ctx, r)
}

// finish ends all that is left of a machine and clears its folder; record and console are kept for a while. Whoever
// comes second leaves it to the first.
func (p *Provider) finish(ctx context.Context, r *record) error {
	if _, busy := p.ending.LoadOrStore(r.ID, true); busy {
		return nil
	}
	defer p.ending.Delete(r.ID)
	if err := p.end(ctx, r); err != nil {
		return err
	}
	unmount(p.folder(r.ID))
	if err := removeGroups(groupOf(r.ID)); err != nil { // it stays a dying one, and is taken up again
		return transient("removing the control groups of machine "+r.ID, err)
	}
	for _, name := range []string{dataFolder, agentFile, "user-data.hcl", "user-data.json"} {
		if err := os.RemoveAll(filepath.Join(p.folder(r.ID), name)); err != nil {
			return transient("clearing machine "+r.ID, err)
		}
	}
	r.Dying, r.PID, r.Born = false, 0, 0
	return p.write(r)
}

// end asks the agent to end, then ends everything by force.
func (p *Provider) end(ctx context.Context, r *record) error {
	data := p.data(r.ID)
	if p.runs(r) && p.cfg.StopTimeout > 0 {
		_ = unix.Kill(r.PID, unix.SIGTERM) // it just ended
		deadline := p.clock.Now().Add(p.cfg.StopTimeout)
		for lives(r.PID, r.Born) && p.clock.Now().Before(deadline) {
			if !clock.Sleep(ctx, p.clock, lookAgain) {
				return interrupted(ctx)
			}
		}
	}
	for {
		pids := members(r, data)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // it just ended
		}
		if !clock.Sleep(ctx, p.clock, lookAgain) {
			return interrupted(ctx)
		}
	}
}
