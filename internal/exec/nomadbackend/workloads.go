package nomadbackend

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/hashicorp/nomad/api"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/service"
	"github.com/drover-project/drover/usage"
)

// workloads are all runners of the cluster.
type workloads struct {
	b *Backend
	absent
}

var _ exchange.Workloads = (*workloads)(nil)

// AttachExecution serves exchange.Workloads: Nomad has no way to attach again. Errors: Gone.
func (*workloads) AttachExecution(context.Context, string, string, string, execution.Offsets) (execution.Session, error) {
	return nil, drover.Errorf(drover.Gone, "executions on a Nomad cluster end with their connection")
}

// Executions serves exchange.Workloads: those of this process.
func (w *workloads) Executions(_ context.Context, allocID string) ([]execution.Execution, error) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	var list []execution.Execution
	for s := range w.b.sessions {
		if s.allocID == allocID {
			list = append(list, execution.Execution{ID: s.spec.ID, AllocID: allocID, Spec: s.spec, Running: true})
		}
	}
	slices.SortFunc(list, func(a, b execution.Execution) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// Files serves exchange.Workloads.
func (w *workloads) Files(allocID, _ string) execution.Files { return &files{w.b, allocID} }

// track adds or removes a running session, for Executions to list.
func (b *Backend) track(s *session, running bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if running {
		b.sessions[s] = struct{}{}
	} else {
		delete(b.sessions, s)
	}
}

// stub is what Nomad's client needs to know of an allocation.
func (b *Backend) stub(allocID string) *api.Allocation {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := &api.Allocation{ID: allocID, TaskGroup: environment.GroupName}
	if known := b.allocs[allocID]; known != nil {
		a.NodeID = known.NodeID
	}
	return a
}

// absent is what the execution service does not ask of a cluster's nodes.
type absent struct{}

// notHere is the answer to everything that a Nomad agent already offers by itself.
func notHere() error {
	return drover.Errorf(drover.NotImplemented, "ask the Nomad cluster itself for this")
}

// ListFolder implements exchange.AllocFolder.
func (absent) ListFolder(context.Context, string, string) ([]drover.AllocFileInfo, error) {
	return nil, notHere()
}

// StatFolder implements exchange.AllocFolder.
func (absent) StatFolder(context.Context, string, string) (i drover.AllocFileInfo, err error) {
	return i, notHere()
}

// ReadFolder implements exchange.AllocFolder.
func (absent) ReadFolder(context.Context, string, string, int64, int64) (io.ReadCloser, error) {
	return nil, notHere()
}

// SnapshotFolder implements exchange.AllocFolder.
func (absent) SnapshotFolder(context.Context, string) (io.ReadCloser, error) { return nil, notHere() }

// Logs implements exchange.AllocFolder.
func (absent) Logs(context.Context, exchange.LogRequest) (exchange.LogReader, error) {
	return nil, notHere()
}

// RestartTask implements exchange.AllocControl.
func (absent) RestartTask(context.Context, string, string, bool) error { return notHere() }

// SignalTask implements exchange.AllocControl.
func (absent) SignalTask(context.Context, string, string, string) error { return notHere() }

// AllocStats implements exchange.AllocControl.
func (absent) AllocStats(context.Context, string, string) (*usage.AllocResourceUsage, error) {
	return nil, notHere()
}

// AllocChecks implements exchange.AllocControl.
func (absent) AllocChecks(context.Context, string) (map[string]service.CheckStatus, error) {
	return nil, notHere()
}

// NodeStats implements exchange.AllocControl.
func (absent) NodeStats(context.Context) (*usage.HostStats, error) { return nil, notHere() }

// IdentityClaims implements exchange.NodeIdentity.
func (absent) IdentityClaims(context.Context) ([]byte, error) { return nil, notHere() }

// RenewIdentity implements exchange.NodeIdentity.
func (absent) RenewIdentity(context.Context) error { return notHere() }

// CollectGarbage implements exchange.AllocControl.
func (absent) CollectGarbage(context.Context, string) error { return notHere() }
