package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/e2e/program"
)

// run runs a command of the command line against the agent, and returns what it says.
func (a *agent) run(args ...string) (string, error) {
	cmd := exec.CommandContext(a.t.Context(), program.Binary, args...)
	cmd.Env = append(os.Environ(), "DROVER_ADDR=http://"+a.addr)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must is run for a command that has to go well.
func (a *agent) must(args ...string) string {
	a.t.Helper()
	out, err := a.run(args...)
	require.NoError(a.t, err, out)
	return out
}

func jobIDs(t *testing.T, c *api.Client, stale bool) (ids []string) {
	t.Helper()
	list, _, err := c.Jobs().List(&api.QueryOptions{AllowStale: stale})
	require.NoError(t, err)
	for _, j := range list {
		ids = append(ids, j.ID)
	}
	return ids
}

// stateSum is the sum of a server's own state.
func (a *agent) stateSum() string {
	a.t.Helper()
	in, err := a.nomad().Operator().Snapshot(&api.QueryOptions{AllowStale: true})
	require.NoError(a.t, err)
	zip, err := gzip.NewReader(in)
	require.NoError(a.t, err)
	text, err := io.ReadAll(zip)
	require.NoError(a.t, err)
	at := bytes.LastIndex(text, []byte("  state.bin\n")) // in SHA256SUMS, which is the last file
	require.Greater(a.t, at, 64)
	return string(text[at-64 : at])
}

// TestTheStateGoesBackWithItsNodes: after a restore into the same server jobs are as they were saved. What was started since
// ends, and what was ended since runs again. A claim that was saved goes on, and a runner that was handed out since is handed
// out to nobody.
func TestTheStateGoesBackWithItsNodes(t *testing.T) {
	t.Parallel()
	a := start(t, append([]string{"-server", "-client"}, config(t, filepath.Join(t.TempDir(), "data"), "")...)...)
	c, dir := a.nomad(), t.TempDir()
	service := func(id string) (pid int) {
		file := filepath.Join(dir, id+"-"+strconv.FormatInt(time.Now().UnixNano(), 10))
		_, _, err := c.Jobs().Register(rawJob(id, "service", "/bin/sh", "-c", "echo $$ > "+file+"; exec sleep 1000"), nil)
		require.NoError(t, err)
		allocation(t, c, id, "running")
		return readPid(t, file)
	}
	kept := service("kept")
	service("ended")
	a.putEnvironment("10", 2)
	claimed := a.claim(10)
	eventually(t, "a full pool", func() (bool, string) { p := a.pool("10"); return p.IdleRunners == 2 && p.UsedRunners == 1, "" })

	file := filepath.Join(dir, "backup.snap")
	require.Contains(t, a.must("operator", "snapshot", "save", file), "Saved the state")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Contains(t, a.must("operator", "snapshot", "inspect", file), "allocations")
	require.Contains(t, a.must("operator", "snapshot", "state", file), `"ID":"kept"`)
	_, err = a.run("operator", "snapshot", "save", file)
	require.Error(t, err, "it is there already")

	later := service("later")
	_, _, err = c.Jobs().Deregister("ended", true, nil)
	require.NoError(t, err)
	since := a.claim(10)
	events := follow(t, a)

	a.must("operator", "snapshot", "restore", file)
	require.ElementsMatch(t, []string{"environment-10", "ended", "kept"}, jobIDs(t, c, false))
	eventually(t, "the end of what was started since", func() (bool, string) { return syscall.Kill(later, 0) != nil, "" })
	allocation(t, c, "ended", "running")
	require.NoError(t, syscall.Kill(kept, 0), "what was saved and runs goes on")
	require.Contains(t, <-events, "subscription closed")

	native := a.native()
	x, err := native.StartExecution(t.Context(), claimed, execution.Request{Spec: execution.Spec{Argv: []string{"/bin/true"}}})
	require.NoError(t, err, "a claim that was saved goes on")
	require.NotEmpty(t, x.ID)
	eventually(t, "the end of a claim that was not saved", func() (bool, string) {
		_, err := native.Runner(t.Context(), since)
		return err != nil, ""
	})
	eventually(t, "a full pool", func() (bool, string) {
		p := a.pool("10")
		return p.IdleRunners == 2 && p.UsedRunners == 1, fmt.Sprint(p)
	})
	for range 2 {
		next := a.claim(10)
		require.NotEqual(t, since, next, "nobody gets a runner that was handed out")
		require.NotEqual(t, claimed, next)
	}
	for _, id := range []string{"kept", "ended"} {
		_, _, err := c.Jobs().Deregister(id, true, nil)
		require.NoError(t, err)
	}
	status, text := a.ask("DELETE", "/execution-environments/10", nil)
	require.Equal(t, 204, status, text)
	nothingRuns(t, c)
}

// follow reads the event stream to its end, and returns its last line.
func follow(t *testing.T, a *agent) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.addr+"/v1/event/stream", nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	last := make(chan string, 1)
	go func() { // ends with the stream
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
		last <- string(lines[len(lines)-1])
	}()
	return last
}

// TestAnArchiveIsRestoredIntoOtherServers: what a lone server saved under load is restored into an empty one and into three, by
// Nomad's own client, through a server that does not lead. What is no archive of ours changes nothing.
func TestAnArchiveIsRestoredIntoOtherServers(t *testing.T) {
	t.Parallel()
	old := start(t, append([]string{"-server"}, config(t, filepath.Join(t.TempDir(), "old"), "")...)...)
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	registered := make(chan int, 1)
	load.Go(func() { // ends with ctx
		n := 0
		for ctx.Err() == nil {
			if _, _, err := old.nomad().Jobs().Register(serversJob(fmt.Sprint("job", n)), nil); err == nil {
				n++
			}
			if n == 20 {
				registered <- n
			}
		}
	})
	<-registered
	in, err := old.nomad().Operator().Snapshot(nil)
	require.NoError(t, err)
	archive, err := io.ReadAll(in)
	require.NoError(t, err)
	cancel()
	load.Wait()

	lone := start(t, append([]string{"-server"}, config(t, filepath.Join(t.TempDir(), "new"), "")...)...)
	_, err = lone.nomad().Operator().SnapshotRestore(bytes.NewReader(archive), nil)
	require.NoError(t, err)
	require.Subset(t, jobIDs(t, lone.nomad(), false), []string{"job0", "job19"})

	r := startServers(t, 3, "")
	leads := r.agreed(3, r.list...)
	follower := r.list[(leads+1)%3]
	before := follower.stateSum()
	for name, bad := range map[string][]byte{
		"torn": archive[:len(archive)-1], "foreign": nomadsArchive(t), "forged": bytes.Replace(archive, archive[400:404], []byte("nope"), 1),
	} {
		_, err = follower.nomad().Operator().SnapshotRestore(bytes.NewReader(bad), nil)
		require.ErrorContains(t, err, "archive", name)
	}
	require.NotEmpty(t, before)
	require.Empty(t, jobIDs(t, follower.nomad(), false))
	_, err = follower.nomad().Operator().SnapshotRestore(bytes.NewReader(archive), nil)
	require.NoError(t, err)
	for _, a := range r.list {
		eventually(t, "the jobs", func() (bool, string) {
			ids := jobIDs(t, a.nomad(), true)
			return len(ids) >= 20, fmt.Sprint(ids)
		})
	}
	r.equalStates()
	_, _, err = follower.nomad().Jobs().Register(serversJob("after"), nil)
	require.NoError(t, err)
}

// equalStates waits until all servers have the same state.
func (r *region) equalStates() {
	r.t.Helper()
	eventually(r.t, "equal states", func() (bool, string) {
		first := r.list[0].stateSum()
		return first == r.list[1].stateSum() && first == r.list[2].stateSum(), ""
	})
}

// nomadsArchive looks like Nomad's own.
func nomadsArchive(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"meta.json": `{"Version":1,"ID":"2-14-1","Index":14,"Term":2,"Size":3}`, "state.bin": "abc", "SHA256SUMS": "x  meta.json\ny  state.bin\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	out, err := exec.CommandContext(t.Context(), "tar", "-C", dir, "-czf", "-", "meta.json", "state.bin", "SHA256SUMS").Output()
	require.NoError(t, err)
	return out
}

// noisyArchive has so many jobs, of which each takes an entry of the log for itself.
func noisyArchive(t *testing.T, jobs int) []byte {
	t.Helper()
	old := start(t, append([]string{"-server"}, config(t, filepath.Join(t.TempDir(), "old"), "")...)...)
	noise := make([]byte, 300_000)
	for n := range jobs {
		_, err := rand.Read(noise)
		require.NoError(t, err)
		job := serversJob(fmt.Sprint("archived", n))
		job.Meta = map[string]string{"noise": fmt.Sprintf("%x", noise)}
		_, _, err = old.nomad().Jobs().Register(job, nil)
		require.NoError(t, err)
	}
	in, err := old.nomad().Operator().Snapshot(nil)
	require.NoError(t, err)
	archive, err := io.ReadAll(in)
	require.NoError(t, err)
	return archive
}

// TestTheLeaderIsKilledWhileItRestores: all servers have the old state afterwards, or all have the new one, and go on.
func TestTheLeaderIsKilledWhileItRestores(t *testing.T) {
	t.Parallel()
	archive := noisyArchive(t, 5)
	r := startServers(t, 3, "")
	r.agreed(3, r.list...)
	_, _, err := r.list[0].nomad().Jobs().Register(serversJob("present"), nil)
	require.NoError(t, err)
	for _, after := range []time.Duration{0, 10 * time.Millisecond, 60 * time.Millisecond, 200 * time.Millisecond} {
		leads := r.agreed(3, r.list...)
		answered := make(chan error, 1)
		go func(c *api.Client) { // ends when the leader is killed at the latest
			_, err := c.Operator().SnapshotRestore(bytes.NewReader(archive), nil)
			answered <- err
		}(r.list[leads].nomad())
		time.Sleep(after) // wherever it falls
		r.list[leads].PullThePlug()
		restored := <-answered == nil
		r.list[leads] = r.start(leads, 3)
		r.agreed(3, r.list...)
		_, _, err = r.list[leads].nomad().Jobs().Register(serversJob("goes-on"), nil)
		require.NoError(t, err)
		r.equalStates()
		ids := jobIDs(t, r.list[leads].nomad(), false)
		t.Logf("killed after %v, answered %v: %v", after, restored, ids)
		switch len(ids) {
		case 2:
			require.False(t, restored, "what was acknowledged is there")
			require.Contains(t, ids, "present")
		default:
			require.Subset(t, ids, []string{"archived0", "archived1", "archived2", "archived3", "archived4"})
			require.NotContains(t, ids, "present")
		}
	}
}

// TestMachinesBoughtSinceAreAdopted: a machine that was bought after the archive was saved is found by its tags, and works on; no other is
// bought for the same work.
func TestMachinesBoughtSinceAreAdopted(t *testing.T) {
	t.Parallel()
	args := fleetAgent(t, "")
	a := start(t, args...)
	c, file := a.nomad(), filepath.Join(t.TempDir(), "before.snap")
	eventually(t, "the pool", func() (bool, string) {
		status, text := a.request("GET", "/v1/fleet/pools", "")
		return status == 200 && len(text) > 10, text
	})
	a.must("operator", "snapshot", "save", file)
	_, _, err := c.Jobs().Register(rawJob("work", "service", "/bin/sleep", "1000"), nil)
	require.NoError(t, err)
	allocation(t, c, "work", "running")
	before := a.machines()
	require.Len(t, before, 1)

	a.must("operator", "snapshot", "restore", file)
	_, _, err = c.Jobs().Register(rawJob("work", "service", "/bin/sleep", "1000"), nil) // the archive does not have it
	require.NoError(t, err)
	allocation(t, c, "work", "running")
	eventually(t, "the machine of before", func() (bool, string) {
		now := a.machines()
		return len(now) == 1 && now[0].ProviderID == before[0].ProviderID && now[0].State == fleet.InstanceActive, fmt.Sprint(now)
	})
	bought, err := filepath.Glob(filepath.Join(dataOf(a), "fleet", "local", "lo-*"))
	require.NoError(t, err)
	require.Len(t, bought, 1)
	_, _, err = c.Jobs().Deregister("work", true, nil)
	require.NoError(t, err)
	a.noMachine(t)
}

// TestAClusterGoesBackWithItsNodes: three servers and two nodes go back to what was saved. What was started since ends, what
// was ended since runs again, and the rest is not touched. No runner is handed out twice, and the next leader knows the same.
func TestAClusterGoesBackWithItsNodes(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "")
	leads := r.agreed(3, r.list...)
	r.nodesOf(2)
	follower, other := r.list[(leads+1)%3], r.list[(leads+2)%3]
	c := follower.nomad()
	service := func(id string) []string {
		_, _, err := c.Jobs().Register(rawJob(id, "service", "/bin/sh", "-c", "echo hello; sleep 1000"), nil)
		require.NoError(t, err)
		return running(t, c, id, 1)
	}
	kept := service("kept")
	service("ended")
	follower.putEnvironment("10", 2)
	claimed := follower.claim(10)
	eventually(t, "a full pool", func() (bool, string) { p := follower.pool("10"); return p.IdleRunners == 2 && p.UsedRunners == 1, "" })
	file := filepath.Join(t.TempDir(), "backup.snap")
	follower.must("operator", "snapshot", "save", file)

	service("later")
	_, _, err := c.Jobs().Deregister("ended", true, nil)
	require.NoError(t, err)
	since := map[string]bool{claimed: true, other.claim(10): true, r.list[leads].claim(10): true}
	follower.must("operator", "snapshot", "restore", file)

	running(t, c, "ended", 1)
	reach(t, "kept", kept, r.list...)
	for _, s := range r.list {
		eventually(t, "the jobs", func() (bool, string) {
			ids := jobIDs(t, s.nomad(), true)
			return len(ids) == 3, fmt.Sprint(ids)
		})
	}
	eventually(t, "a full pool", func() (bool, string) {
		p := follower.pool("10")
		return p.IdleRunners == 2 && p.UsedRunners == 1, fmt.Sprint(p)
	})
	for range 2 {
		next := follower.claim(10)
		require.False(t, since[next], "nobody gets a runner that was handed out")
		since[next] = true
	}
	r.list[leads].PullThePlug()
	r.agreed(3, follower, other)
	reach(t, "kept", kept, follower, other)
	eventually(t, "that a claim which was saved goes on", func() (bool, string) { // once another server has it
		request := execution.Request{Spec: execution.Spec{Argv: []string{"/bin/true"}}}
		_, err := follower.native().StartExecution(t.Context(), claimed, request)
		return err == nil, fmt.Sprint(err)
	})
	for _, id := range []string{"kept", "ended"} {
		_, _, err := c.Jobs().Deregister(id, true, nil)
		require.NoError(t, err)
	}
	status, text := follower.ask("DELETE", "/execution-environments/10", nil)
	require.Equal(t, 204, status, text)
	nothingRuns(t, c)
}
