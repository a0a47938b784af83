package grouped

import (
	"context"
	"runtime"
	"sync"

	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// Launch launches a supervisor beside the payload's group. On v1 it forks from a thread that is in the supervisors' groups, so that
// drover-init is born in them. Moving a process instead would stop all forks of the machine for milliseconds in each hierarchy. The
// thread goes back as soon as it has forked; if it cannot, it ends with its goroutine.
func Launch(
	ctx context.Context,
	group *cgroup.Group,
	cfg supervisor.LaunchConfig,
	opts supervisor.Options,
) (client *supervisor.Client, err error) {
	if group.Version() != cgroup.V1 {
		cfg.Forked = group.AddInit
		return supervisor.Launch(ctx, cfg, opts)
	}
	done := make(chan struct{})
	go func() { // ends with the launch
		defer close(done)
		runtime.LockOSThread()
		back, joinErr := group.JoinInit()
		home := sync.OnceFunc(func() {
			if joinErr != nil || back() == nil {
				runtime.UnlockOSThread()
			}
		})
		cfg.Forked = func(pid int) error {
			home()
			if joinErr != nil {
				return group.AddInit(pid)
			}
			return nil
		}
		client, err = supervisor.Launch(ctx, cfg, opts)
		home()
	}()
	<-done
	return client, err
}
