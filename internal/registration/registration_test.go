package registration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/service"
)

// world is an allocation that runs in bridge mode, and its node.
func world(services ...*service.Service) (*drover.Allocation, *drover.Node) {
	job := &drover.Job{ID: "j", Name: "J", Meta: map[string]string{"tier": "gold"}, TaskGroups: []*drover.TaskGroup{{
		Name: "g", Services: services, Tasks: []*drover.Task{{Name: "t", Driver: "fake", Env: map[string]string{"COLOUR": "blue"}}},
	}}}
	job.Canonicalize()
	return &drover.Allocation{
			ID: "a1", Namespace: "default", Name: "j.g[2]", NodeID: "n1", JobID: "j", Job: job, TaskGroup: "g",
			DesiredStatus: drover.AllocDesiredRun, ClientStatus: drover.AllocClientRunning, CreateIndex: 7, AllocModifyIndex: 9,
			TaskStates:    map[string]*drover.TaskState{"t": {State: drover.TaskStateRunning}},
			NetworkStatus: &network.Status{Address: "172.26.64.5", AddressIPv6: "fd00::5"},
			AllocatedResources: &drover.AllocatedResources{
				Tasks: map[string]*drover.AllocatedTaskResources{"t": {Networks: []*network.Resource{{
					IP: "192.0.2.1", DynamicPorts: []network.Port{{Label: "old", Value: 25_000}},
				}}}},
				Shared: drover.AllocatedSharedResources{Ports: []network.PortMapping{
					{Label: "http", Value: 21_000, To: 80, HostIP: "192.0.2.1"}, {Label: "admin", Value: 22_000, HostIP: "10.0.0.1"},
				}},
			},
		}, &drover.Node{
			ID: "n1", Name: "one", Datacenter: "dc1", Attributes: map[string]string{"unique.network.ip-address": "192.0.2.1"},
		}
}

// The addresses are those that Nomad's documentation of address_mode gives.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		service service.Service
		address string
		port    int
	}{
		"auto":                {service.Service{PortLabel: "http"}, "192.0.2.1", 21_000},
		"host":                {service.Service{PortLabel: "http", AddressMode: "host"}, "192.0.2.1", 21_000},
		"a host network":      {service.Service{PortLabel: "admin"}, "10.0.0.1", 22_000},
		"alloc":               {service.Service{PortLabel: "http", AddressMode: "alloc"}, "172.26.64.5", 80},
		"alloc without to":    {service.Service{PortLabel: "admin", AddressMode: "alloc"}, "172.26.64.5", 22_000},
		"alloc, a number":     {service.Service{PortLabel: "8080", AddressMode: "alloc"}, "172.26.64.5", 8080},
		"alloc without port":  {service.Service{AddressMode: "alloc"}, "172.26.64.5", 0},
		"alloc_ipv6":          {service.Service{PortLabel: "http", AddressMode: "alloc_ipv6"}, "fd00::5", 80},
		"driver":              {service.Service{PortLabel: "http", AddressMode: "driver"}, "172.26.64.5", 80},
		"a number":            {service.Service{PortLabel: "8080"}, "192.0.2.1", 8080},
		"no port":             {service.Service{}, "192.0.2.1", 0},
		"an address":          {service.Service{PortLabel: "http", Address: "www.example.com"}, "www.example.com", 21_000},
		"an address of a var": {service.Service{Address: "${node.unique.name}.example.com"}, "one.example.com", 0},
		"the older form":      {service.Service{PortLabel: "old"}, "192.0.2.1", 25_000},
	} {
		c.service.Name = "s"
		a, n := world(&c.service)
		found := Of(a, n)
		require.Len(t, found, 1, name)
		require.Equal(t, c.address, found[0].Address, name)
		require.Equal(t, c.port, found[0].Port, name)
	}
	for name, s := range map[string]service.Service{
		"a port that is none": {PortLabel: "nope"}, "a number that is none": {PortLabel: "70000"}, "consul's": {Provider: "consul"},
	} {
		a, n := world(&s)
		require.Empty(t, Of(a, n), name)
	}
	a, n := world(&service.Service{PortLabel: "http", AddressMode: "alloc"})
	a.NetworkStatus = nil
	require.Empty(t, Of(a, n), "it is not known yet")
}

func TestRegistrations(t *testing.T) {
	t.Parallel()
	a, n := world(&service.Service{
		Name: "${TASKGROUP}-${NOMAD_META_tier}", PortLabel: "http", Tags: []string{"i${NOMAD_ALLOC_INDEX}", "${node.datacenter}"},
		CanaryTags: []string{"canary"},
	})
	task := a.Job.TaskGroups[0].Tasks[0]
	task.Services = []*service.Service{{Tags: []string{"${COLOUR}"}}}
	a.Job.Canonicalize()
	require.Empty(t, cmp.Diff([]*service.Registration{
		{
			ID: "_nomad-task-a1-group-g-g-gold-http", ServiceName: "g-gold", Namespace: "default", NodeID: "n1", Datacenter: "dc1", JobID: "j",
			AllocID: "a1", Tags: []string{"i2", "dc1"}, Address: "192.0.2.1", Port: 21_000, CreateIndex: 7, ModifyIndex: 9,
		},
		{
			ID: "_nomad-task-a1-t-J-g-t-", ServiceName: "J-g-t", Namespace: "default", NodeID: "n1", Datacenter: "dc1", JobID: "j",
			AllocID: "a1", Tags: []string{"blue"}, Address: "192.0.2.1", CreateIndex: 7, ModifyIndex: 9,
		},
	}, Of(a, n)))
	a.FailingServices = []string{"/g-gold/http"}
	require.True(t, Of(a, n)[0].Unhealthy)
	require.False(t, Of(a, n)[1].Unhealthy)
	a.DeploymentStatus = &drover.AllocDeploymentStatus{Canary: true}
	require.Equal(t, []string{"canary"}, Of(a, n)[0].Tags)
	require.Equal(t, []string{"blue"}, Of(a, n)[1].Tags, "it has no tags for canaries")

	a.TaskStates["t"].State = drover.TaskStatePending
	require.Len(t, Of(a, n), 1, "a task that waits for its restart serves nothing")
	a.ClientStatus = drover.AllocClientLost
	require.Empty(t, Of(a, n))
	a.ClientStatus, a.DesiredStatus = drover.AllocClientRunning, drover.AllocDesiredStop
	require.Empty(t, Of(a, n), "its shutdown_delay gives clients the time to notice")
	require.Empty(t, Of(nil, nil))
	require.Empty(t, Of(&drover.Allocation{}, nil))
}
