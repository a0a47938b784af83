package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netns"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/e2e/program"
	"github.com/drover-project/drover/internal/fleet/provider/ec2/ec2test"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// boughtPool is the fleet's pool and its node pool, and what its jobs are called.
const boughtPool = "bought"

// bought is an emulated cloud, and its machines: agents that share a namespace, and end when the cloud ends them.
type bought struct {
	*ec2test.Cloud
	t     *testing.T
	dir   string
	block string // of servers that buy there

	mu   sync.Mutex // guards jobs
	jobs []string   // that were asked for, acknowledged or not
}

// machinesHost is the namespace of the machines.
const machinesHost = "machines"

// listen listens where agents reach the clients.
func (l *lan) listen(t *testing.T) (listener net.Listener) {
	t.Helper()
	made := make(chan error, 1)
	go func() { // its thread ends with it
		runtime.LockOSThread()
		err := netns.Set(l.hub)
		if err == nil {
			listener, err = net.Listen("tcp", callers+":0")
		}
		made <- err
	}()
	require.NoError(t, <-made)
	return listener
}

// newBought starts the cloud. The test ends it.
func newBought(t *testing.T, l *lan, dir string) *bought {
	t.Helper()
	b := &bought{Cloud: ec2test.New(t), t: t, dir: dir}
	listener := l.listen(t)
	server := &http.Server{Handler: b.Cloud, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // ends with Close
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	b.URL = "http://" + listener.Addr().String()
	b.With(func(c *ec2test.Cloud) { c.Wall = true })
	require.NoError(t, os.MkdirAll(dir, 0o700))
	text := fmt.Sprintf(`bind_addr = "127.0.0.1"
client {
  cgroup_parent     = %q
  cpu_total_compute = 1000
  memory_total_mb   = 512
}
plugin "raw_exec" {
  config {
    enabled = true
  }
}
plugin "docker" {
  config {
    enabled = false
  }
}
`, program.GroupParent())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "machine.hcl"), []byte(text), 0o600))
	b.block = fmt.Sprintf(`fleet {
  provider "ec2" {
    region           = %q
    endpoint         = %q
    access_key       = %q
    secret_key       = %q
    calls_per_second = 50
  }
  pool %q {
    provider     = "ec2"
    node_pool    = %q
    zones        = ["eu-test-1a"]
    image        = "ami-1"
    max          = 3
    idle         = "3s"
    adopt_grace  = "5s"
    orphan_grace = "10s"
    user_data    = "$${config}"
    type "m5.large" {
      cpu    = 1000
      memory = 512
      price  = 0.1
    }
  }
}
`, ec2test.Region, b.URL, ec2test.AccessKey, ec2test.SecretKey, boughtPool, boughtPool)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // ends with the test
		defer close(stopped)
		b.clockwork(stop)
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
	return b
}

// clockwork starts and ends machines as the cloud says.
func (b *bought) clockwork(stop <-chan struct{}) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	running := map[string]*exec.Cmd{}
	end := func(id string) {
		_ = running[id].Process.Kill() // it may have ended by itself
		_ = running[id].Wait()
		drivertest.SweepFolder(filepath.Join(b.dir, id)) // a machine that is off runs nothing
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
		for _, i := range b.Instances() {
			switch cmd := running[i.ID]; {
			case cmd != nil && !i.Ended.IsZero():
				end(i.ID)
			case cmd == nil && i.Ended.IsZero():
				if running[i.ID] = b.boot(&i); running[i.ID] == nil {
					return
				}
			}
		}
	}
}

// boot starts a machine with its user data; nil if that cannot be.
func (b *bought) boot(i *ec2test.Instance) *exec.Cmd {
	folder := filepath.Join(b.dir, i.ID)
	given := folder + ".hcl"
	// whom the address would reach there
	told := strings.ReplaceAll(i.UserData, `metadata = "http://169.254.169.254"`, fmt.Sprintf("metadata = %q", b.Metadata(i.ID)))
	cmd := exec.Command("nsenter", "--net=/run/netns/"+space(machinesHost), program.Binary, "agent", "-node", i.ID, "-http-port", "0",
		"-config", given, "-config", filepath.Join(b.dir, "machine.hcl"), "-data-dir", folder)
	err := os.WriteFile(given, []byte(told), 0o600)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	out, outErr := os.Create(folder + ".log")
	if err = errors.Join(err, outErr); err == nil {
		defer func() { _ = out.Close() }() // the agent has it
		cmd.Stdout, cmd.Stderr = out, out
		err = cmd.Start()
	}
	if err != nil {
		b.t.Errorf("booting machine %s: %v", i.ID, err)
		return nil
	}
	return cmd
}

// buys registers jobs that need machines of the fleet, a few at a time, so that machines are bought and returned again and again. Now and
// then it has the cloud do what it is asked and not answer.
func (w *world) buys(chance *rand.Rand) {
	wait := func() time.Duration {
		if chance.IntN(3) == 0 { // longer than an idle machine is kept
			return time.Duration(7000+chance.IntN(3000)) * time.Millisecond
		}
		return time.Duration(chance.IntN(1000)) * time.Millisecond
	}
	for n := 0; w.pause(wait()); n++ {
		switch chance.IntN(6) {
		case 0:
			w.cloud.Fail("RunInstances", ec2test.Fault{After: true})
		case 1:
			w.cloud.Fail("TerminateInstances", ec2test.Fault{After: true})
		case 2:
			w.cloud.Fail("DescribeInstances", ec2test.Fault{Status: http.StatusServiceUnavailable, Code: "Unavailable"})
		}
		j := shellJob(fmt.Sprintf("%s-%d", boughtPool, n), "batch", 1, fmt.Sprintf("%s; sleep %d", w.diary(), 1+chance.IntN(3)))
		j.NodePool = boughtPool
		j.TaskGroups[0].Tasks[0].Resources.CPU = 800
		w.cloud.mu.Lock()
		w.cloud.jobs = append(w.cloud.jobs, j.ID)
		w.cloud.mu.Unlock()
		w.register(n%3, j)
	}
}

// paid are the cloud's machines that cost, and how many there ever were.
func (b *bought) paid() (now []string, ever int) {
	for _, i := range b.Instances() {
		ever++
		if i.Ended.IsZero() {
			now = append(now, fmt.Sprintf("%s (%s, since %s)", i.ID, i.Tag(fleet.TagIntent), i.Launched.Format(time.TimeOnly)))
		}
	}
	return now, ever
}

// twice are the intents of which several machines came.
func (b *bought) twice() (list []string) {
	of := map[string][]string{}
	for _, i := range b.Instances() {
		of[i.Tag(fleet.TagIntent)] = append(of[i.Tag(fleet.TagIntent)], i.ID)
	}
	for intent, ids := range of {
		if len(ids) > 1 || intent == "" {
			list = append(list, fmt.Sprintf("%q: %v", intent, ids))
		}
	}
	return list
}

// checkMachines sees that every machine was bought for an intent of its own, and for a piece of work at most. None is left once
// all work is done: neither in the cloud, nor in what any server knows.
func (w *world) checkMachines() {
	from := w.now()
	var left []string
	known := func() (list []string) {
		for s := range w.servers {
			var machines []fleet.Instance
			if _, err := w.call(s, http.MethodGet, "/v1/fleet/instances", nil, nil, &machines, patience); err != nil {
				list = append(list, fmt.Sprintf("%s: %v", w.servers[s].name, err))
			}
			for _, m := range machines {
				list = append(list, fmt.Sprintf("%s knows %s as %s: %s", w.servers[s].name, m.ID, m.State, m.Reason))
			}
		}
		return list
	}
	var knows []string
	w.eventually(90*time.Second, func() bool {
		left, _ = w.cloud.paid()
		knows = known()
		return len(left)+len(knows) == 0
	})
	if len(left)+len(knows) > 0 {
		w.breach(promiseMachines, "all work is done for %.0f s, and machines are left: %v; servers: %v", (w.now() - from).Seconds(), left, knows)
	}
	if twice := w.cloud.twice(); len(twice) > 0 {
		w.breach(promiseMachines, "intents of which not one machine came: %v", twice)
	}
	allocs := 0
	for _, id := range w.cloud.jobs {
		var list []struct{ ID string }
		if _, err := w.call(0, http.MethodGet, "/v1/job/"+id+"/allocations", url.Values{"all": {"true"}}, nil, &list, patience); err == nil {
			allocs += len(list)
		}
	}
	_, ever := w.cloud.paid()
	if ever > allocs {
		w.breach(promiseMachines, "%d machines were bought for %d allocations", ever, allocs)
	}
	if ever == 0 {
		w.breach(promiseMachines, "no machine was bought for %d jobs", len(w.cloud.jobs))
	}
	calls := map[string]int{}
	w.cloud.With(func(c *ec2test.Cloud) {
		for _, action := range []string{"RunInstances", "TerminateInstances", "DescribeInstances"} {
			calls[action] = c.Calls[action]
		}
	})
	w.figure("%d machines were bought for %d jobs (%d allocations), by %v; the last went %.1f s after the work", ever, len(w.cloud.jobs),
		allocs, calls, (w.now() - from).Seconds())
}
