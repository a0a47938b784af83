package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/id"
)

// TestAnAgentKilledAmongNetworks: killed again and again while it connects groups, it takes over what is whole and makes the rest again. In
// the end all run and are reached, and of those that ended nothing is left.
func TestAnAgentKilledAmongNetworks(t *testing.T) {
	t.Parallel()
	const groups, kills = 6, 4
	device := "drk" + id.Random{}.New()[:6]
	n := os.Getpid()
	subnet := fmt.Sprintf("172.29.%d.%d/28", n%250, n/250%16*16)
	dir := t.TempDir()
	arguments := config(t, filepath.Join(dir, "data"), "server {\n  enabled = true\n}\n"+clientBlock(fmt.Sprintf(
		"enabled = true\nbridge_network_name = %q\nbridge_network_subnet = %q\nbridge_network_subnet_ipv6 = \"fd%02x:%04x::/64\"",
		device, subnet, n>>16&0xff, n&0xffff,
	)))
	pairs := func() string {
		out, _ := exec.Command("ip", "-o", "link", "show", "master", device).Output() // none without the bridge
		return string(out)
	}
	t.Cleanup(func() {
		if t.Failed() { // else nothing is left
			cleanAfter(t, arguments)
		}
	})
	a := start(t, arguments...)
	job := rawJob("many", "service", "/bin/sleep", "1000")
	for i := range groups {
		g := rawJob("", "", "/bin/sleep", "1000").TaskGroups[0]
		g.Name = new(fmt.Sprint("g", i))
		g.RestartPolicy = &api.RestartPolicy{Attempts: new(20), Mode: new("delay")}
		// What the agent was preparing when it was killed twice has failed, and another one is placed.
		g.ReschedulePolicy = &api.ReschedulePolicy{Unlimited: new(true), Delay: new(5 * time.Second), DelayFunction: new("constant")}
		g.Networks = []*api.NetworkResource{{Mode: "bridge", DynamicPorts: []api.Port{{Label: "p"}}}}
		job.TaskGroups = append(job.TaskGroups, g)
	}
	job.TaskGroups = job.TaskGroups[1:]
	_, _, err := a.nomad().Jobs().Register(job, nil)
	require.NoError(t, err)
	for i := range kills {
		eventually(t, "pairs of the next groups", func() (bool, string) {
			now := pairs()
			return strings.Count(now, "\n") >= i, now
		})
		a.PullThePlug()
		a = start(t, arguments...)
	}
	c := a.nomad()
	eventually(t, "all groups run", func() (bool, string) {
		list, _, err := c.Jobs().Allocations("many", false, nil)
		running, how := 0, ""
		for _, alloc := range list {
			how += " " + alloc.ClientStatus
			if alloc.ClientStatus == "running" {
				running++
			}
		}
		return err == nil && running == groups && strings.Count(pairs(), "\n") == groups, fmt.Sprint(running, how, err, pairs())
	})
	_, _, err = c.Jobs().Deregister("many", true, nil)
	require.NoError(t, err)
	eventually(t, "nothing of the groups is left", func() (bool, string) {
		records, err := filepath.Glob(filepath.Join(dir, "data", "netns", "*"))
		mounts, errMounts := os.ReadFile("/proc/self/mountinfo")
		known, _ := exec.Command("ip", "-6", "neigh", "show", "nud", "permanent", "dev", device).Output()
		left := pairs() + strings.Join(records, " ") + string(known)
		return err == nil && errMounts == nil && left == "" && !strings.Contains(string(mounts), dir+"/data/netns"), left
	})
	a.Stop()
	_, err = os.Stat("/sys/class/net/" + device)
	require.ErrorIs(t, err, os.ErrNotExist, "the bridge went with the last agent")
	tables, err := exec.Command("nft", "list", "tables").Output()
	require.NoError(t, err)
	require.NotContains(t, string(tables), device)
}
