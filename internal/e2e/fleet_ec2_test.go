package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/e2e/program"
	"github.com/drover-project/drover/internal/fleet/provider/ec2/ec2test"
)

// account is an emulated EC2 whose machines are agents on this one: they start with their user data, and end when they
// are terminated, or turn themselves off.
type account struct {
	*ec2test.Cloud
	t     *testing.T
	dir   string
	dark  atomic.Bool // machines do not boot
	block string      // of a server that buys there
}

// newAccount returns an account; more is what its pool "aws" says beside.
func newAccount(t *testing.T, provider, more string) *account {
	t.Helper()
	c := &account{Cloud: ec2test.New(t), t: t, dir: t.TempDir()}
	t.Cleanup(func() {
		endMachines(t, c.dir)
		endMachines(t, filepath.Join(c.dir, "data")) // those of a loopback provider beside
	})
	c.With(func(c *ec2test.Cloud) { c.Wall = true })
	require.NoError(t, os.MkdirAll(filepath.Join(c.dir, "bin"), 0o755))
	off := "#!/bin/sh\ntouch " + c.dir + "/off\nkill -KILL $PPID\n"
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "bin", "poweroff"), []byte(off), 0o755)) // a program
	text := clientBlock("") + "plugin \"raw_exec\" {\n  config {\n    enabled = true\n  }\n}\n"
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "machine.hcl"), []byte(text), 0o600))
	c.block = fmt.Sprintf(`server {
  enabled           = true
  heartbeat_grace   = "6s"
  min_heartbeat_ttl = "2s"
}
fleet {
  provider "ec2" {
    region     = %q
    endpoint   = %q
    access_key = %q
    secret_key = %q
    calls_per_second = 50
    %s
  }
  pool "aws" {
    provider    = "ec2"
    node_pool   = "default"
    zones       = ["eu-test-1a"]
    image       = "ami-1"
    idle        = "2s"
    adopt_grace = "4s"
    user_data   = "$${config}"
    %s
    type "m5.large" {
      cpu        = 1000
      memory     = 512
      price      = 0.1
      spot_price = 0.05
    }
  }
}
`, ec2test.Region, c.URL, ec2test.AccessKey, ec2test.SecretKey, provider, more)
	ended, stop := make(chan struct{}), make(chan struct{})
	go func() { // ends with the test
		defer close(ended)
		c.clockwork(stop)
	}()
	t.Cleanup(func() {
		close(stop)
		<-ended
	})
	return c
}

// server returns the arguments of a server that buys in the account.
func (c *account) server() []string {
	c.t.Helper()
	return append([]string{"-server", "-rpc-port", freePort(c.t)}, config(c.t, filepath.Join(c.dir, "data"), c.block)...)
}

// clockwork starts and ends machines as the cloud says.
func (c *account) clockwork(stop <-chan struct{}) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	running := map[string]*exec.Cmd{}
	end := func(id string) {
		_ = running[id].Process.Kill()
		_ = running[id].Wait()
		for _, pid := range processesOf(filepath.Join(c.dir, id)) { // a machine that is off runs nothing
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		unmountBelow(c.t, filepath.Join(c.dir, id)) // and mounts nothing
		delete(running, id)
	}
	for {
		select {
		case <-stop:
			for id := range running {
				end(id)
			}
			return
		case <-ticker.C:
		}
		for _, i := range c.Instances() {
			switch cmd := running[i.ID]; {
			case cmd != nil && !i.Ended.IsZero():
				end(i.ID)
			case cmd == nil && i.Ended.IsZero() && !c.dark.Load():
				running[i.ID] = c.boot(&i)
			}
		}
	}
}

func (c *account) boot(i *ec2test.Instance) *exec.Cmd {
	folder := filepath.Join(c.dir, i.ID)
	given := filepath.Join(c.dir, i.ID+".hcl")
	cmd := exec.Command(program.Binary, "agent", "-http-port", "0", "-config", given, "-config", filepath.Join(c.dir, "machine.hcl"),
		"-data-dir", folder)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(c.dir, "bin")+":"+os.Getenv("PATH"))
	// whom the address would reach there
	told := strings.ReplaceAll(i.UserData, `metadata = "http://169.254.169.254"`, fmt.Sprintf("metadata = %q", c.Metadata(i.ID)))
	if err := os.WriteFile(given, []byte(told), 0o600); err != nil {
		c.t.Error(err)
	}
	out, err := os.Create(folder + ".log")
	if err != nil {
		c.t.Error(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		c.t.Error(err)
	}
	return cmd
}

// paid counts machines that cost, and all that there ever were.
func (c *account) paid() (now, ever int) {
	for _, i := range c.Instances() {
		if ever++; i.Ended.IsZero() {
			now++
		}
	}
	return now, ever
}

// allEnd waits until nothing costs any more.
func (c *account) allEnd(a *agent) {
	c.t.Helper()
	eventually(c.t, "the end of all that costs", func() (bool, string) {
		now, _ := c.paid()
		return now == 0 && len(a.machines()) == 0, fmt.Sprint(now, a.machines())
	})
}

func one(t *testing.T, a *agent, what string, is func(i *fleet.Instance) bool) fleet.Instance {
	t.Helper()
	var last fleet.Instance
	eventually(t, what, func() (bool, string) {
		list := a.machines()
		if len(list) == 1 {
			last = list[0]
		}
		return len(list) == 1 && is(&list[0]), fmt.Sprintf("%+v", list)
	})
	return last
}

// The server is killed in each state of a machine: while the cloud makes it and says nothing, while it boots, works,
// drains and is destroyed. There is one machine, and the work runs once.
func TestAServerIsKilledInEachStateOfAMachine(t *testing.T) {
	t.Parallel()
	c := newAccount(t, "", "")
	c.dark.Store(true)
	args := c.server()
	a := start(t, args...)
	again := func() {
		a.PullThePlug()
		a = start(t, args...)
	}
	ran, release := filepath.Join(c.dir, "ran"), filepath.Join(c.dir, "release")
	c.Fail("RunInstances", ec2test.Fault{Hang: true, After: true})
	_, _, err := a.nomad().Jobs().Register(fleetJob("work", 1, "echo x >> "+ran+"; while [ ! -e "+release+" ]; do sleep 0.1; done"), nil)
	require.NoError(t, err)
	eventually(t, "the create", func() (bool, string) { _, ever := c.paid(); return ever == 1, "" })
	one(t, a, "the state creating", func(i *fleet.Instance) bool { return i.State == fleet.InstanceCreating })
	again()
	one(t, a, "the state booting", func(i *fleet.Instance) bool { return i.State == fleet.InstanceBooting && i.ProviderID != "" })
	again()
	one(t, a, "the machine", func(i *fleet.Instance) bool { return i.State == fleet.InstanceBooting && i.ProviderID != "" })
	c.dark.Store(false)
	eventually(t, "the node", func() (bool, string) {
		nodes, _, err := a.nomad().Nodes().List(nil)
		return err == nil && len(nodes) == 1, c.said()
	})
	again() // registered, or active by now
	eventually(t, "the work", func() (bool, string) { return len(lines(t, ran)) == 1, fmt.Sprint(a.machines(), c.said()) })
	again()
	i := one(t, a, "the busy machine", func(i *fleet.Instance) bool { return i.State == fleet.InstanceActive && i.Work == 1 })
	status, text := a.fleet("PUT", "instance/"+i.ID+"/drain", `{"Reason":"a test"}`, nil)
	require.Equal(t, 204, status, text)
	again()
	one(t, a, "the drained machine", func(i *fleet.Instance) bool { return i.Behavior == fleet.BehaviorDrain && i.Work == 1 })
	c.Fail("TerminateInstances", ec2test.Fault{Hang: true})
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	eventually(t, "the state destroying", func() (bool, string) {
		calls := 0
		c.With(func(c *ec2test.Cloud) { calls = c.Calls["TerminateInstances"] })
		return calls == 1, fmt.Sprint(a.machines())
	})
	again()
	c.allEnd(a)
	_, ever := c.paid()
	require.Equal(t, 1, ever, "one machine was bought")
	require.Len(t, lines(t, ran), 1, "the work ran once")
	var audit []fleet.Audit
	a.fleet("GET", "audit?limit=1000", "", &audit)
	var words []string
	for _, e := range audit {
		words = append(words, e.What)
	}
	for _, want := range []string{"create", "active", "drain", "destroy", "gone"} {
		require.Contains(t, words, want, "the audit log outlives the server")
	}
}

// said is what the machines' agents printed.
func (c *account) said() string {
	var all []string
	files, _ := filepath.Glob(filepath.Join(c.dir, "i-*.log"))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		all = append(all, string(text))
	}
	return strings.Join(all, "\n")
}

// Machines of one call have equal user data, and each joins as itself.
func TestMachinesOfABatch(t *testing.T) {
	t.Parallel()
	c := newAccount(t, "", "min = 3")
	a := start(t, c.server()...)
	eventually(t, "three machines", func() (bool, string) {
		active, list := 0, a.machines()
		for _, i := range list {
			if i.State == fleet.InstanceActive {
				active++
			}
		}
		return active == 3, fmt.Sprint(list, c.said())
	})
	ids := map[string]string{}
	for _, i := range a.machines() {
		ids[i.ProviderID] = i.ID
	}
	shared := map[string]int{}
	for _, i := range c.Instances() {
		require.Contains(t, ids, i.ID)
		shared[i.UserData]++
	}
	require.Len(t, c.Instances(), 3)
	require.Len(t, shared, 1, "bought by one call")
	require.Equal(t, 1, c.Calls["RunInstances"])
}

// Machines that never call home are given up and replaced, at last by one that does, without anybody's help.
func TestMachinesThatNeverCallHome(t *testing.T) {
	t.Parallel()
	c := newAccount(t, "", `boot_timeout = "15s"`)
	c.dark.Store(true)
	a := start(t, c.server()...)
	ran := filepath.Join(c.dir, "ran")
	_, _, err := a.nomad().Jobs().Register(fleetJob("work", 1, "echo x >> "+ran), nil)
	require.NoError(t, err)
	eventually(t, "a machine that was given up", func() (bool, string) {
		now, ever := c.paid()
		return ever >= 2 && ever > now, fmt.Sprint(now, ever, a.machines())
	})
	now, _ := c.paid()
	require.LessOrEqual(t, now, 2, "no double purchase")
	c.dark.Store(false)
	eventually(t, "the work", func() (bool, string) { return len(lines(t, ran)) == 1, fmt.Sprint(a.machines(), c.said()) })
	c.allEnd(a)
	var audit []fleet.Audit
	a.fleet("GET", "audit?limit=1000", "", &audit)
	require.Contains(t, fmt.Sprint(audit), "boot")
}

// Spot prices come from the cloud: for what is bought, and for what runs.
func TestSpotPricesOfTheCloud(t *testing.T) {
	t.Parallel()
	c := newAccount(t, `price_interval = "1s"`, "spot = \"only\"\n    min = 1\n")
	set := func(price float64) {
		c.With(func(c *ec2test.Cloud) {
			c.SpotPrices = []ec2test.SpotPrice{{Type: "m5.large", Zone: "eu-test-1a", Price: price}}
		})
	}
	set(0.03)
	a := start(t, c.server()...)
	priced := func(price float64) {
		eventually(t, fmt.Sprint("the price ", price), func() (bool, string) {
			list := a.machines()
			return len(list) == 1 && list[0].State == fleet.InstanceActive && list[0].Price == price, fmt.Sprintf("%+v", list)
		})
	}
	priced(0.03)
	set(0.04)
	priced(0.04)
	var audit []fleet.Audit
	a.fleet("GET", "audit", "", &audit)
	require.Contains(t, fmt.Sprint(audit), "1 of 1 offerings of ec2 cost something else now")
}

// A cloud that refuses the credentials, or can't be reached, is named with the reason, and machines of others live on.
func TestACloudThatCantBeUsed(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct{ from, to, want string }{
		"credentials": {ec2test.SecretKey, "wrong", "SignatureDoesNotMatch"},
		"unreachable": {"http://127.0.0.1:", "http://127.0.0.1:1/", "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newAccount(t, "", "min = 1")
			if name == "unreachable" {
				c.block = strings.Replace(c.block, c.URL, "http://127.0.0.1:1", 1)
			} else {
				c.block = strings.Replace(c.block, x.from, x.to, 1)
			}
			c.block = strings.Replace(c.block, "fleet {", `fleet {
  provider "local" {
    type = "loopback"
  }
  pool "here" {
    provider = "local"
    min      = 1
    type "t" {
      cpu    = 500
      memory = 128
      price  = 1
    }
  }
`, 1)
			a := start(t, c.server()...)
			var pools []fleet.PoolStatus
			eventually(t, "the reason", func() (bool, string) {
				a.fleet("GET", "pools", "", &pools)
				return len(pools) == 2 && strings.Contains(pools[0].Problem, x.want) && pools[1].Machines["active"] == 1, fmt.Sprintf("%+v", pools)
			})
			require.Equal(t, "aws", pools[0].Name)
			require.Empty(t, pools[1].Problem)
			eventually(t, "the log", func() (bool, string) { return strings.Contains(a.Output(), x.want), a.Output() })
			out, err := exec.Command(program.Binary, append([]string{"fleet", "check", "aws"},
				config(t, filepath.Join(c.dir, "data"), c.block)...)...).CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(out), x.want)
			require.Contains(t, string(out), "fleet.provider.ec2")
			_, ever := c.paid()
			require.Zero(t, ever)
		})
	}
}

// A server that is gone for good costs nothing: machines that hear nobody end themselves.
func TestTheDeadMansSwitch(t *testing.T) {
	t.Parallel()
	c := newAccount(t, "", "min = 1\n    terminate_at_dead = \"10s\"\n")
	a := start(t, c.server()...)
	one(t, a, "the machine", func(i *fleet.Instance) bool { return i.State == fleet.InstanceActive })
	local := start(t, fleetAgent(t, "min = 1\n    terminate_at_dead = \"10s\"\n")...)
	one(t, local, "the process", func(i *fleet.Instance) bool { return i.State == fleet.InstanceActive })
	processes := filepath.Join(dataOf(local), "fleet")
	require.NotEmpty(t, processesOf(processes))
	a.PullThePlug()
	local.PullThePlug()
	eventually(t, "the poweroff", func() (bool, string) {
		_, err := os.Stat(filepath.Join(c.dir, "off"))
		return err == nil, c.said()
	})
	eventually(t, "the end of the process", func() (bool, string) {
		left := processesOf(processes)
		return len(left) == 0, fmt.Sprint(left)
	})
}

// Two providers serve one node pool: what the cheap one can't sell comes from the other one, and nothing is bought twice.
func TestTwoProvidersServeOneNodePool(t *testing.T) {
	t.Parallel()
	more := `max = 2
    type "tiny" {
      cpu    = 900
      memory = 256
      price  = 0.01
    }
`
	args := fleetAgent(t, more)
	second := filepath.Join(t.TempDir(), "second.json")
	require.NoError(t, os.WriteFile(second, []byte(`{"Provider":"local","NodePool":"default",
		"Zones":["z"],"Idle":3000000000,"AdoptGrace":1000000000,
		"UserData":"${config}\nplugin \"raw_exec\" {\n  config {\n    enabled = true\n  }\n}\n",
		"Types":[{"Name":"dear","Price":3,"Capacity":{"CPU":900,"MemoryMB":256}}]}`), 0o600))
	a := start(t, args...)
	text, err := os.ReadFile(second)
	require.NoError(t, err)
	status, said := a.fleet("PUT", "pool/dear", string(text), nil)
	require.Equal(t, 200, status, said)
	ran, release := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "release") // else the first one's machine serves again
	_, _, err = a.nomad().Jobs().Register(fleetJob("work", 5,
		"echo $NOMAD_ALLOC_INDEX >> "+ran+"; while [ ! -e "+release+" ]; do sleep 0.1; done"), nil)
	require.NoError(t, err)
	eventually(t, "the work", func() (bool, string) { return len(lines(t, ran)) == 5, fmt.Sprint(a.machines()) })
	by := map[string]int{}
	for _, i := range a.machines() {
		by[i.Pool]++
	}
	require.Equal(t, map[string]int{"std": 2, "dear": 3}, by)
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	a.noMachine(t)
	var costs fleet.CostReport
	a.fleet("GET", "cost?by=machine", "", &costs)
	require.Len(t, costs.Lines, 5)
}
