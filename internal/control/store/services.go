package store

import (
	"iter"
	"reflect"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/registration"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/service"
)

// Registrations of services are derived rows: they follow from allocations, and are in no command and no snapshot.

func registrationKey(r *service.Registration) string {
	return term(r.Namespace) + term(r.ServiceName) + term(r.ID)
}

// register makes the registrations those that follow from the allocation as it is now; nil = it is gone.
func (t *Txn) register(old, a *drover.Allocation) {
	if !registration.Any(old) && !registration.Any(a) {
		return
	}
	id, wanted := "", []*service.Registration(nil)
	if a != nil {
		id, wanted = a.ID, registration.Of(a, t.Node(a.NodeID))
	} else {
		id = old.ID
	}
	had := slices.Collect(t.RegistrationsOf(id))
	find := func(list []*service.Registration, id string) *service.Registration {
		i := slices.IndexFunc(list, func(r *service.Registration) bool { return r.ID == id })
		if i < 0 {
			return nil
		}
		return list[i]
	}
	for _, r := range had {
		if find(wanted, r.ID) == nil {
			t.drop(tables.Services, tables.JobKey(r.Namespace, r.ServiceName), r)
			t.services.gone = append(t.services.gone, r)
		}
	}
	for _, r := range wanted {
		if before := find(had, r.ID); before == nil || !reflect.DeepEqual(before, r) {
			t.put(tables.Services, tables.JobKey(r.Namespace, r.ServiceName), r)
			t.services.made = append(t.services.made, r)
		}
	}
}

// serviceChanges are the registrations that a transaction made or changed, and those that it removed.
type serviceChanges struct{ made, gone []*service.Registration }

// ServiceChanges returns the registrations that the transaction made or changed, and those that it removed.
func (t *Txn) ServiceChanges() (made, gone []*service.Registration) {
	return t.services.made, t.services.gone
}

// Registrations yields those of a service in a namespace, or of all services with name "", ordered by name and id.
// Namespace "*" means all.
func (r *reader) Registrations(namespace, name string) iter.Seq[*service.Registration] {
	if namespace == "*" {
		return filter(scan[service.Registration](r, tables.Services, indexID, ""),
			func(s *service.Registration) bool { return name == "" || s.ServiceName == name })
	}
	prefix := term(namespace)
	if name != "" {
		prefix += term(name)
	}
	return scan[service.Registration](r, tables.Services, indexID, prefix)
}

// RegistrationsOf yields those of an allocation.
func (r *reader) RegistrationsOf(allocID string) iter.Seq[*service.Registration] {
	return scan[service.Registration](r, tables.Services, indexAlloc, term(allocID))
}
