package command

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/network"
)

// AppendAllocation appends the allocation's record to dst, without its Job, AllocatedResources and Metrics, which many
// share: whoever writes them beside it restores them. Errors: Invalid for values that msgpack does not know.
func AppendAllocation(dst []byte, a *drover.Allocation) ([]byte, error) {
	w := &writer{buf: dst}
	w.string(1, a.ID)
	w.string(2, a.Namespace)
	w.string(3, a.EvalID)
	w.string(4, a.Name)
	w.string(5, a.NodeID)
	w.string(6, a.NodeName)
	w.string(7, a.JobID)
	w.string(8, a.TaskGroup)
	w.string(9, a.DesiredStatus)
	w.string(10, a.DesiredDescription)
	w.string(11, a.ClientStatus)
	w.string(12, a.ClientDescription)
	w.uint(13, packTransition(a.DesiredTransition))
	w.taskStates(14, a.TaskStates)
	w.string(15, a.DeploymentID)
	w.deploymentStatus(16, a.DeploymentStatus)
	w.string(17, a.FollowupEvalID)
	w.string(18, a.PreviousAllocation)
	w.string(19, a.NextAllocation)
	w.networkStatus(21, a.NetworkStatus)
	for _, id := range a.PreemptedAllocations {
		w.element(22, id)
	}
	w.string(23, a.PreemptedByAllocation)
	w.uint(24, a.CreateIndex)
	w.uint(25, a.ModifyIndex)
	w.uint(26, a.AllocModifyIndex)
	w.int(27, a.CreateTime)
	w.int(28, a.ModifyTime)
	w.int(32, a.UnknownSince)
	w.uint(33, a.Lease)
	w.uint(34, a.Reported)
	for _, s := range a.FailingServices {
		w.element(35, s)
	}
	if err := w.rareAlloc(a); err != nil {
		return nil, drover.Errorf(drover.Invalid, "encoding allocation %s: %w", a.ID, err)
	}
	return w.buf, nil
}

// rareAlloc writes what few allocations have.
func (w *writer) rareAlloc(a *drover.Allocation) error {
	for _, f := range []struct {
		n    int
		has  bool
		what any
	}{
		{20, a.RescheduleTracker != nil, a.RescheduleTracker},
		{29, a.Claim != nil, a.Claim},
	} {
		if !f.has {
			continue
		}
		if err := w.msgpack(f.n, f.what); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) deploymentStatus(n int, s *drover.AllocDeploymentStatus) {
	if s == nil {
		return
	}
	w.message(n, func(w *writer) {
		w.uint(1, packBool(s.Healthy))
		w.time(2, s.Timestamp)
		w.bool(3, s.Canary)
		w.uint(4, s.ModifyIndex)
	})
}

func (w *writer) networkStatus(n int, s *network.Status) {
	if s == nil {
		return
	}
	w.message(n, func(w *writer) {
		w.string(1, s.InterfaceName)
		w.string(2, s.Address)
		w.string(3, s.AddressIPv6)
		if d := s.DNS; d != nil {
			w.message(4, func(w *writer) {
				for i, list := range [][]string{d.Servers, d.Searches, d.Options} {
					for _, s := range list {
						w.element(i+1, s)
					}
				}
			})
		}
	})
}

// DecodeAllocation is AppendAllocation's inverse; strings that many allocations have are shared through in, which may
// be nil. Errors: Invalid.
func DecodeAllocation(data []byte, in *Interner) (*drover.Allocation, error) {
	r := &reader{data: data, strings: in}
	a := &drover.Allocation{}
	for r.next() {
		if s := sharedText(a, r.n); s != nil {
			*s = r.shared()
			continue
		}
		switch r.n {
		case 1:
			a.ID = r.string()
		case 4:
			a.Name = r.string()
		case 14:
			r.taskState(&a.TaskStates)
		case 16:
			a.DeploymentStatus = r.deploymentStatus()
		case 21:
			a.NetworkStatus = r.networkStatus()
		default:
			r.numbers(a)
			r.rare(a)
		}
	}
	return a, r.err("allocation")
}

// sharedText returns where the allocation's text of that number is, if many allocations have the same.
func sharedText(a *drover.Allocation, n int) *string {
	switch n {
	case 2:
		return &a.Namespace
	case 3:
		return &a.EvalID
	case 5:
		return &a.NodeID
	case 6:
		return &a.NodeName
	case 7:
		return &a.JobID
	case 8:
		return &a.TaskGroup
	case 9:
		return &a.DesiredStatus
	case 10:
		return &a.DesiredDescription
	case 11:
		return &a.ClientStatus
	case 12:
		return &a.ClientDescription
	case 15:
		return &a.DeploymentID
	case 17:
		return &a.FollowupEvalID
	}
	return nil
}

func (r *reader) numbers(a *drover.Allocation) {
	switch r.n {
	case 13:
		a.DesiredTransition = unpackTransition(r.value)
	case 24:
		a.CreateIndex = r.value
	case 25:
		a.ModifyIndex = r.value
	case 26:
		a.AllocModifyIndex = r.value
	case 27:
		a.CreateTime = r.int()
	case 28:
		a.ModifyTime = r.int()
	case 32:
		a.UnknownSince = r.int()
	case 33:
		a.Lease = r.value
	case 34:
		a.Reported = r.value
	}
}

func (r *reader) rare(a *drover.Allocation) {
	switch r.n {
	case 18:
		a.PreviousAllocation = r.string()
	case 19:
		a.NextAllocation = r.string()
	case 20:
		r.msgpack(&a.RescheduleTracker)
	case 22:
		a.PreemptedAllocations = append(a.PreemptedAllocations, r.string())
	case 23:
		a.PreemptedByAllocation = r.string()
	case 29:
		r.msgpack(&a.Claim)
	case 35:
		a.FailingServices = append(a.FailingServices, r.shared())
	}
}

func (r *reader) deploymentStatus() *drover.AllocDeploymentStatus {
	s := &drover.AllocDeploymentStatus{}
	x := r.inner()
	for x.next() {
		switch x.n {
		case 1:
			s.Healthy = unpackBool(x.value)
		case 2:
			s.Timestamp = x.time()
		case 3:
			s.Canary = x.bool()
		case 4:
			s.ModifyIndex = x.value
		}
	}
	r.done(&x)
	return s
}

func (r *reader) networkStatus() *network.Status {
	s := &network.Status{}
	x := r.inner()
	for x.next() {
		switch x.n {
		case 1:
			s.InterfaceName = x.shared()
		case 2:
			s.Address = x.string()
		case 3:
			s.AddressIPv6 = x.string()
		case 4:
			y := x.inner()
			s.DNS = y.dns()
			x.done(&y)
		}
	}
	r.done(&x)
	return s
}

func (r *reader) dns() *network.DNSConfig {
	d := &network.DNSConfig{}
	for r.next() {
		switch r.n {
		case 1:
			d.Servers = append(d.Servers, r.shared())
		case 2:
			d.Searches = append(d.Searches, r.shared())
		case 3:
			d.Options = append(d.Options, r.shared())
		}
	}
	return d
}

// packBool is 0 for nil, 1 for false, 2 for true.
func packBool(b *bool) uint64 {
	switch {
	case b == nil:
		return 0
	case *b:
		return 2
	}
	return 1
}

func unpackBool(v uint64) *bool {
	if v == 0 {
		return nil
	}
	return new(v == 2)
}

func packTransition(t drover.DesiredTransition) (v uint64) {
	for i, b := range []*bool{t.Migrate, t.Reschedule, t.ForceReschedule, t.NoShutdownDelay, t.MigrateDisablePlacement} {
		v |= packBool(b) << (2 * i)
	}
	return v
}

func unpackTransition(v uint64) (t drover.DesiredTransition) {
	for i, b := range []**bool{&t.Migrate, &t.Reschedule, &t.ForceReschedule, &t.NoShutdownDelay, &t.MigrateDisablePlacement} {
		*b = unpackBool(v >> (2 * i) & 3)
	}
	return t
}
