package services

import (
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/registration"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/service"
)

// face answers the group's requests.
type face struct{ *answer.Cluster }

// Routes lists the group's routes.
func Routes(c *answer.Cluster) []httpapi.Route {
	f, reads := &face{c}, httpapi.InNamespace(policy.ReadServices)
	return []httpapi.Route{
		{Pattern: "GET /v1/services", Where: httpapi.Reads, Need: reads, Handle: f.list},
		{Pattern: "GET /v1/service/{name}", Where: httpapi.Reads, Need: reads, Handle: f.read},
		{
			Pattern: "DELETE /v1/service/{name}/{id}", Where: httpapi.Leader,
			Need: httpapi.InNamespace(policy.DeleteServiceRegistration), Handle: f.remove,
		},
	}
}

// inNamespace is what a list shows of a namespace.
type inNamespace struct {
	Namespace string
	Services  []stub
}

// stub is a service in short; its tags are those of all its registrations, each once, in order.
type stub struct {
	ServiceName string
	Tags        []string
}

// list answers GET /v1/services with the services of a namespace, or of all ("*").
func (f *face) list(w http.ResponseWriter, r *http.Request) error {
	return answer.Lister[*inNamespace, *inNamespace]{
		On: []answer.Source{{Table: tables.Services}},
		Items: func(q answer.Query, s answer.Snapshot) iter.Seq[*inNamespace] {
			return slices.Values(byNamespace(s, q))
		},
		ID:   func(n *inNamespace) string { return n.Namespace },
		Sees: answer.In(policy.ReadServices, func(n *inNamespace) string { return n.Namespace }),
		View: func(n *inNamespace, _ answer.Snapshot) *inNamespace { return n },
	}.Serve(f.Cluster, w, r)
}

// byNamespace gathers the services whose names begin with the query's prefix.
func byNamespace(s answer.Snapshot, q answer.Query) (out []*inNamespace) {
	tags := map[string]map[string]map[string]bool{} // by namespace and service
	for r := range s.Registrations(q.Namespace, "") {
		if !strings.HasPrefix(r.ServiceName, q.Prefix) {
			continue
		}
		if tags[r.Namespace] == nil {
			tags[r.Namespace] = map[string]map[string]bool{}
		}
		of := tags[r.Namespace]
		if of[r.ServiceName] == nil {
			of[r.ServiceName] = map[string]bool{}
		}
		for _, t := range r.Tags {
			of[r.ServiceName][t] = true
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(tags)) {
		n := &inNamespace{Namespace: namespace}
		for _, name := range slices.Sorted(maps.Keys(tags[namespace])) {
			n.Services = append(n.Services, stub{name, append([]string{}, slices.Sorted(maps.Keys(tags[namespace][name]))...)})
		}
		out = append(out, n)
	}
	return out
}

// read answers GET /v1/service/NAME with where the service is found; choose=N|KEY picks N of these, the same ones for
// the same key as long as they are there.
func (f *face) read(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	l := List(func(q answer.Query, s answer.Snapshot) iter.Seq[*service.Registration] {
		return s.Registrations(q.Namespace, name)
	})
	l.On[0].Key = tables.JobKey(answer.Namespace(r), name)
	if answer.Namespace(r) == "*" {
		l.On[0].Key = ""
	}
	if choose := r.URL.Query().Get("choose"); choose != "" {
		count, key, found := strings.Cut(choose, "|")
		n, err := strconv.Atoi(count)
		if !found || err != nil || n < 1 || key == "" {
			return drover.Errorf(drover.Invalid, "choose: must be a number and a key, such as 2|web, got %q", choose)
		}
		all := l.Items
		l.Items = func(q answer.Query, s answer.Snapshot) iter.Seq[*service.Registration] {
			return slices.Values(registration.Choose(slices.Collect(all(q, s)), n, key))
		}
	}
	return l.Serve(f.Cluster, w, r)
}

// List answers a list of registrations.
func List(
	items func(answer.Query, answer.Snapshot) iter.Seq[*service.Registration],
) answer.Lister[*service.Registration, *service.Registration] {
	return answer.Lister[*service.Registration, *service.Registration]{
		On:    []answer.Source{{Table: tables.Services}},
		Items: items,
		ID:    func(r *service.Registration) string { return r.ID },
		Sees:  answer.In(policy.ReadServices, func(r *service.Registration) string { return r.Namespace }),
		View:  func(r *service.Registration, _ answer.Snapshot) *service.Registration { return r },
	}
}

// remove answers DELETE /v1/service/NAME/ID. A registration is there while its allocation serves it, and cannot outlive
// it: there is nothing to remove.
func (f *face) remove(_ http.ResponseWriter, r *http.Request) error {
	caller := httpapi.CallerOf(r.Context())
	for s := range f.State.Snapshot().Registrations(answer.Namespace(r), r.PathValue("name")) {
		if s.ID == r.PathValue("id") && caller.Namespace(s.Namespace, policy.DeleteServiceRegistration) {
			return drover.Errorf(drover.Conflict, "service registration %s is that of allocation %s, which serves it: stop the allocation",
				s.ID, s.AllocID)
		}
	}
	return drover.Errorf(drover.NotFound, "service registration not found")
}
