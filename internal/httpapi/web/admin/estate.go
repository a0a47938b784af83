package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/service"
	"github.com/drover-project/drover/tenancy"
	"github.com/drover-project/drover/volume"
)

// services lists the services that tasks serve, by name.
func (h *Pages) services(w http.ResponseWriter, r *http.Request) error {
	var all []struct {
		Namespace string
		Services  []struct {
			ServiceName string
			Tags        []string
		}
	}
	next, err := h.List(r, api("services"), everywhere(r), &all)
	var rows []html.Part
	n := 0
	for _, in := range all {
		for _, s := range in.Services {
			if n++; n <= most {
				to := html.Path("ui", "services", s.ServiceName).With("namespace", in.Namespace)
				rows = append(rows, parts.Row(parts.Link(to, s.ServiceName), html.Name(in.Namespace), html.Name(strings.Join(s.Tags, ", "))))
			}
		}
	}
	body := html.Group(filters(r, "prefix", Text.BeginsWith, "namespace", Text.Namespace),
		parts.Live("services", []string{drover.TopicService}, 0, cut(n),
			parts.Table(Text.Services, Text.ServiceColumns, rows, Text.NoServices),
			h.Pager(r, at(r, html.Path("ui", "services"), "namespace"), next)))
	return h.Show(w, r, Text.Services, body, err)
}

// service shows where one is found.
func (h *Pages) service(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("service")
	var all []service.Registration
	query := url.Values{"namespace": {cmp.Or(r.URL.Query().Get("namespace"), drover.DefaultNamespace)}}
	next, err := h.List(r, api("service", name), query, &all)
	rows := make([]html.Part, 0, len(all))
	for i := range all {
		s := &all[i]
		healthy := parts.Status(Text.Healthy)
		if s.Unhealthy {
			healthy = parts.Status(Text.Unhealthy)
		}
		address := parts.None
		if s.Address != "" || s.Port != 0 {
			address = fmt.Sprintf("%s:%d", s.Address, s.Port)
		}
		rows = append(rows, parts.Row(html.Text(address), healthy, jobLink(s.JobID, s.Namespace), idLink("allocations", s.AllocID),
			idLink("clients", s.NodeID), html.Name(s.Datacenter), html.Name(strings.Join(s.Tags, ", "))))
	}
	body := parts.Live("service", []string{drover.TopicService, drover.TopicAllocation}, 5,
		parts.Table(Text.Service, Text.InstanceColumns, rows, Text.NoInstances),
		h.Pager(r, at(r, html.Path("ui", "services", name), "namespace"), next))
	return h.Show(w, r, name, body, err)
}

// volumes lists the dynamic host volumes.
func (h *Pages) volumes(w http.ResponseWriter, r *http.Request) error {
	query := everywhere(r)
	query.Set("type", "host")
	var all []volume.HostVolumeStub
	next, err := h.List(r, api("volumes"), query, &all)
	rows := make([]html.Part, 0, len(all))
	for i := range all {
		v := &all[i]
		to := html.Path("ui", "volumes", v.ID).With("namespace", v.Namespace)
		rows = append(rows, parts.Row(parts.Link(to, v.Name), html.Text(parts.ShortID(v.ID)), html.Name(v.Namespace), parts.Status(v.State),
			idLink("clients", v.NodeID), html.Name(v.NodePool), html.Text(capacity(v.CapacityBytes)), html.Name(v.PluginID)))
	}
	body := html.Group(filters(r, "prefix", Text.BeginsWith, "namespace", Text.Namespace),
		parts.Live("volumes", []string{drover.TopicHostVolume}, 0, parts.Table(Text.Volumes, Text.VolumeColumns, rows, Text.NoVolumes),
			h.Pager(r, at(r, html.Path("ui", "volumes"), "namespace"), next)))
	return h.Show(w, r, Text.Volumes, body, err)
}

func capacity(bytes int64) string {
	if bytes == 0 {
		return parts.None
	}
	return parts.Size(bytes)
}

// volume shows one, and what mounts it.
func (h *Pages) volume(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("volume")
	var v volume.HostVolume
	err := h.Ask(r, inNamespace(api("volume", "host", id), r.URL.Query().Get("namespace")), &v)
	rows := make([]html.Part, 0, len(v.Allocations))
	for _, a := range v.Allocations {
		rows = append(rows, parts.Row(idLink("allocations", a.ID), html.Name(a.Name), parts.Status(a.ClientStatus),
			parts.Link(html.Path("ui", "clients", a.NodeID), a.NodeName)))
	}
	problem := html.Part{}
	if v.StateDescription != "" {
		problem = notice("warn", v.State, v.StateDescription)
	}
	body := parts.Live("volume", []string{drover.TopicHostVolume, drover.TopicAllocation}, 0, problem,
		parts.Facts(parts.Fact(Text.Status, parts.Status(v.State)), parts.Fact(Text.Namespace, html.Name(v.Namespace)),
			parts.Fact(Text.Node, idLink("clients", v.NodeID)), parts.Fact(Text.Pool, html.Name(v.NodePool)),
			parts.Fact(Text.Capacity, html.Text(capacity(v.CapacityBytes))), parts.Fact(Text.Plugin, html.Name(v.PluginID)),
			parts.Fact(Text.Path, html.Name(cmp.Or(v.HostPath, parts.None))), parts.Fact(Text.Made, parts.Moment(v.CreateTime)),
			parts.Fact(Text.ID, html.Text(v.ID))),
		html.El("h2", html.Text(Text.Mounts)), parts.Table(Text.Mounts, Text.PlacedColumns, rows, Text.NoMounts))
	return h.Show(w, r, cmp.Or(v.Name, id), body, err)
}

// namespaces lists those that the viewer may see, with their quotas.
func (h *Pages) namespaces(w http.ResponseWriter, r *http.Request) error {
	var all []tenancy.Namespace
	next, err := h.List(r, api("namespaces"), url.Values{}, &all)
	rows := make([]html.Part, 0, len(all))
	for i := range all {
		n := &all[i]
		rows = append(rows, parts.Row(parts.Link(html.Path("ui", "namespaces", n.Name), n.Name), html.Name(cmp.Or(n.Quota, parts.None)),
			html.Name(n.Description)))
	}
	body := html.Group(filters(r, "prefix", Text.BeginsWith),
		parts.Table(Text.Namespaces, Text.NamespaceColumns, rows, Text.NoNamespaces), h.Pager(r, html.Path("ui", "namespaces"), next))
	return h.Show(w, r, Text.Namespaces, body, err)
}

// namespace shows what is allowed in one, and what of its quota is used.
func (h *Pages) namespace(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("namespace")
	var n tenancy.Namespace
	if err := h.Ask(r, api("namespace", name), &n); err != nil {
		return h.Show(w, r, name, html.Part{}, err)
	}
	list := func(all []string) html.Part { return html.Name(cmp.Or(strings.Join(all, ", "), parts.None)) }
	rules := []html.Part{parts.Fact(Text.Description, html.Name(cmp.Or(n.Description, parts.None)))}
	if c := n.Capabilities; c != nil {
		rules = append(rules, parts.Fact(Text.DriversOn, list(c.EnabledTaskDrivers)), parts.Fact(Text.DriversOff, list(c.DisabledTaskDrivers)),
			parts.Fact(Text.NetworksOn, list(c.EnabledNetworkModes)), parts.Fact(Text.NetworksOff, list(c.DisabledNetworkModes)))
	}
	if p := n.NodePoolConfiguration; p != nil {
		rules = append(rules, parts.Fact(Text.PoolDefault, html.Name(cmp.Or(p.Default, parts.None))),
			parts.Fact(Text.PoolsOn, list(p.Allowed)), parts.Fact(Text.PoolsOff, list(p.Denied)))
	}
	if i := n.Images; i != nil {
		rules = append(rules, parts.Fact(Text.Registries, list(i.Registries)), parts.Fact(Text.Pin, html.Name(cmp.Or(i.Pin, parts.None))))
	}
	quota := html.El("p", html.Class("muted"), html.Text(Text.NoQuota))
	if n.Quota != "" {
		quota = h.quota(r, n.Quota)
	}
	within := h.within(r, name)
	body := html.Group(parts.Facts(rules...), html.El("h2", html.Text(Text.Quota+" "), html.Name(n.Quota)), quota,
		html.El("h2", html.Text(Text.Within)), html.El("ul", within...))
	return h.Show(w, r, name, body, nil)
}

// within leads to what of a namespace the viewer may see something of.
func (h *Pages) within(r *http.Request, name string) (items []html.Part) {
	may := acl.Levels{Management: true} // what the page offers in error the API refuses
	var told acl.Levels
	if h.Ask(r, api("rights"), &told) == nil {
		may = told
	}
	for _, of := range []struct {
		words, page string
		seen        bool
	}{
		{Text.Deployments, "deployments", may.Jobs},
		{Text.Evaluations, "evaluations", may.Jobs},
		{Text.Services, "services", may.Services},
		{Text.Volumes, "volumes", may.Volumes},
		{Text.Variables, "variables", may.Variables},
	} {
		if may.Management || of.seen {
			to := html.Path("ui", of.page).With("namespace", name)
			items = append(items, html.El("li", html.El("a", html.Href(to), html.Text(of.words))))
		}
	}
	return items
}

// quota shows what of a quota's limits is used here, by all of its namespaces together.
func (h *Pages) quota(r *http.Request, name string) html.Part {
	var spec tenancy.QuotaSpec
	var used tenancy.QuotaUsage
	err := h.Ask(r, api("quota", name), &spec)
	if err == nil {
		err = h.Ask(r, api("quota-usage", name), &used)
	}
	if err != nil {
		return h.Failed(r, err)
	}
	var rows []html.Part
	for _, limit := range spec.Limits {
		if limit == nil || limit.RegionLimit == nil {
			continue
		}
		now := tenancy.QuotaResources{}
		if u := used.Used[hashOf(limit)]; u != nil && u.RegionLimit != nil {
			now = *u.RegionLimit
		}
		for _, one := range amounts(limit.RegionLimit, &now) {
			rows = append(rows, parts.Row(html.Name(limit.Region), html.Text(one.name), html.Text(one.used), html.Text(one.limit), one.bar()))
		}
	}
	return parts.Table(Text.Quota, Text.QuotaColumns, rows, Text.NoLimits)
}
