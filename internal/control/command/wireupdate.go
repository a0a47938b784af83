package command

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
)

func encodeUpdates(dst []byte, c *UpdateAllocs) ([]byte, error) {
	w := &writer{buf: dst}
	w.int(1, c.Time)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		w.message(2, func(w *writer) {
			w.string(1, n.NodeID)
			for j := range n.Updates {
				w.message(2, func(w *writer) { w.update(&n.Updates[j]) })
			}
		})
	}
	for _, e := range c.Evals {
		if err := w.msgpack(3, e); err != nil {
			return nil, err
		}
	}
	return w.buf, nil
}

func (w *writer) update(u *exchange.AllocUpdate) {
	w.string(1, u.ID)
	w.string(2, u.ClientStatus)
	w.string(3, u.ClientDescription)
	w.taskStates(4, u.TaskStates)
	w.deploymentStatus(5, u.DeploymentStatus)
	w.networkStatus(6, u.NetworkStatus)
	w.int(7, u.Time)
	w.string(8, u.DeploymentID)
	w.uint(9, u.Order)
	for _, s := range u.FailingServices {
		w.element(10, s)
	}
}

func decodeUpdates(data []byte, in *Interner) (*UpdateAllocs, error) {
	c := &UpdateAllocs{}
	r := &reader{data: data, strings: in}
	for r.next() {
		switch r.n {
		case 1:
			c.Time = r.int()
		case 2:
			x := r.inner()
			c.Nodes = append(c.Nodes, x.nodeUpdates())
			r.done(&x)
		case 3:
			e := new(drover.Evaluation)
			r.msgpack(e)
			c.Evals = append(c.Evals, e)
		}
	}
	return c, r.err("command UpdateAllocs")
}

func (r *reader) nodeUpdates() (n NodeUpdates) {
	for r.next() {
		switch r.n {
		case 1:
			n.NodeID = r.shared()
		case 2:
			x := r.inner()
			n.Updates = append(n.Updates, x.update())
			r.done(&x)
		}
	}
	return n
}

func (r *reader) update() (u exchange.AllocUpdate) {
	for r.next() {
		switch r.n {
		case 1:
			u.ID = r.string()
		case 2:
			u.ClientStatus = r.shared()
		case 3:
			u.ClientDescription = r.shared()
		case 4:
			r.taskState(&u.TaskStates)
		case 5:
			u.DeploymentStatus = r.deploymentStatus()
		case 6:
			u.NetworkStatus = r.networkStatus()
		case 7:
			u.Time = r.int()
		case 8:
			u.DeploymentID = r.shared()
		case 9:
			u.Order = r.value
		case 10:
			u.FailingServices = append(u.FailingServices, r.shared())
		}
	}
	return u
}
