package docker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/network"
)

func TestProblemsAreNamedAllAtOnce(t *testing.T) {
	t.Parallel()
	d, err := New(Config{Clock: clock.Wall{}})
	require.NoError(t, err)
	err = d.Validate(&drover.Task{Config: map[string]any{
		"comand": "x", "args": "no list", "privileged": true, "pids_limit": 1.5, "cap_add": []any{"sys_admin"}, "work_dir": "relative",
		"volumes": []any{"/etc:/host", "../up:/x", "nothing"}, "ulimit": map[string]any{"nofile": "9:3"}, "dns_servers": []any{"x"},
		"mount": map[string]any{"type": "bind", "target": "relative", "source": "/", "sorce": 1}, "security_opt": []any{"seccomp=unconfined"},
		"pid_mode": "host", "auth": map[string]any{"user": "x"}, "extra_hosts": []any{"x"}, "cpuset_cpus": "all",
	}})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	for _, want := range []string{
		`unknown key "comand"`, "args: must be a list", "privileged: true is outside", "pids_limit: must be a whole",
		"cap_add: sys_admin is outside", "work_dir",
		"volumes: /etc:/host is outside", "leaves the task's folder", `"nothing" is not host:container`, "nofile", `"x" is not an address`,
		`target "relative"`, `unknown key "sorce"`, "security_opt", "pid_mode: host is outside", `unknown key "user"`, "extra_hosts",
		`cpuset_cpus: "all" is no list`,
		"image: is missing",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, d.Close())
}

func TestPortsByLabel(t *testing.T) {
	t.Parallel()
	spec := &driver.Spec{
		Ports: []network.PortMapping{{Label: "http", Value: 23456, To: 80, HostIP: "127.0.0.1"}, {Label: "same", Value: 23457}},
	}
	exposed, bindings, err := ports(spec, taskConfig{ports: []string{"http", "same"}})
	require.NoError(t, err)
	require.Len(t, exposed, 4)
	for port, b := range bindings {
		require.Contains(t, map[string]string{"80/tcp": "23456", "80/udp": "23456", "23457/tcp": "23457", "23457/udp": "23457"}, port.String())
		require.Len(t, b, 1)
	}
	_, _, err = ports(spec, taskConfig{ports: []string{"other"}})
	require.ErrorContains(t, err, `no port "other"`)
}

func TestMemoryAndCPU(t *testing.T) {
	t.Parallel()
	d := &Driver{cfg: Config{CoreMHz: 2000}}
	r, err := d.resources(&driver.Spec{CPUMHz: 500, MemoryMB: 100, MemoryMaxMB: 300, Cores: []uint16{0, 3}}, taskConfig{cpuHard: true})
	require.NoError(t, err)
	require.Equal(
		t,
		[]int64{300 << 20, 300 << 20, 100 << 20, 500, 100_000, 25_000},
		[]int64{r.Memory, r.MemorySwap, r.MemoryReservation, r.CPUShares, r.CPUPeriod, r.CPUQuota},
	)
	require.Equal(t, "0,3", r.CpusetCpus)
	r, err = d.resources(&driver.Spec{}, taskConfig{cpus: "0-1"})
	require.NoError(t, err)
	require.Equal(t, "0-1", r.CpusetCpus)
	r, err = d.resources(&driver.Spec{MemoryMB: 100, MemoryMaxMB: -1}, taskConfig{pids: 7})
	require.NoError(t, err)
	require.Zero(t, r.Memory)
	require.Equal(t, int64(100<<20), r.MemoryReservation)
	require.Equal(t, int64(7), *r.PidsLimit)
	r, err = d.resources(&driver.Spec{MemoryMB: 100}, taskConfig{memoryHard: 200})
	require.NoError(t, err)
	require.Equal(t, []int64{200 << 20, 100 << 20, 2}, []int64{r.Memory, r.MemoryReservation, r.CPUShares})
}
