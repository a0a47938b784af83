package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeGroup fills a folder with the files of a new v2 group; those of limits are empty, as writing here does not replace.
func fakeGroup(t *testing.T, dir string) {
	t.Helper()
	for file, text := range map[string]string{
		"cgroup.controllers": "cpuset cpu memory pids", "cgroup.subtree_control": "", "cgroup.procs": "", "cgroup.threads": "",
		"cgroup.kill": "", "memory.max": "", "memory.low": "", "memory.swap.max": "", "memory.events": "oom_kill 0\n",
		"pids.max": "", "cpu.weight": "", "cpu.max": "", "cpuset.cpus": "",
	} {
		fill(t, dir, file, text)
	}
}

// fakeManager is a manager on a fake v2 tree in which the group "g" can be made, with a child "x.1".
func fakeManager(t *testing.T) (m *Groups, top string) {
	t.Helper()
	root := fakeV2(t)
	fakeGroup(t, filepath.Join(root, "drover"))
	top = filepath.Join(root, "drover", "g")
	for _, d := range []string{"", "init", "task", "task/x.1"} {
		fakeGroup(t, filepath.Join(top, d))
	}
	m, err := New(Config{Root: root})
	require.NoError(t, err)
	return m, top
}

func TestCreateOnV2(t *testing.T) {
	t.Parallel()
	m, top := fakeManager(t)
	require.Equal(t, V2, m.Info().Version)
	require.Equal(t, "v2", m.Info().Version.String())
	g, err := m.Create("g", Limits{MemoryMax: 1 << 20, Pids: 9}, 12345)
	require.NoError(t, err)
	require.Equal(t, "g", g.Name())
	require.Equal(t, filepath.Join(top, "task"), g.Dir("memory"))
	require.Equal(t, filepath.Join(top, "init"), g.InitDir())
	require.Equal(t, "1048576", read(t, filepath.Join(top, "task"), "memory.max"))
	require.Equal(t, "0", read(t, filepath.Join(top, "task"), "memory.swap.max"))
	require.Equal(t, "9", read(t, filepath.Join(top, "task"), "pids.max"))
	for _, d := range []string{"", "task"} { // so that the children have limits of their own
		require.NotEmpty(t, read(t, filepath.Join(top, d), "cgroup.subtree_control"), d)
	}
	names, err := m.List()
	require.NoError(t, err)
	require.Equal(t, []string{"g"}, names)

	require.NoError(t, g.AddInit(77))
	require.Equal(t, "77", read(t, filepath.Join(top, "init"), "cgroup.procs"), "the supervisor is beside the payload")
	require.Equal(t, "cgroup.procs", g.JoinFile())
	require.NoError(t, g.Kill())
	require.Equal(t, "1", read(t, filepath.Join(top, "task"), "cgroup.kill"))
}

// TestContainersRoot: where the root of the tree is a container's group, the processes in it go into a leaf first.
func TestContainersRoot(t *testing.T) {
	t.Parallel()
	root := fakeV2(t)
	fakeGroup(t, filepath.Join(root, "drover"))
	fakeGroup(t, filepath.Join(root, vacatedLeaf))
	fill(t, root, "cgroup.type", "domain\n")
	fill(t, root, "cgroup.subtree_control", "")
	fill(t, root, "cgroup.procs", "7\n")
	_, err := New(Config{Root: root})
	require.ErrorContains(t, err, "always new processes", "a fake root never empties")
	require.Equal(t, "7", read(t, filepath.Join(root, vacatedLeaf), "cgroup.procs"))
	require.Empty(t, read(t, root, "cgroup.subtree_control"), "nothing is handed down as long as it is not empty")
	shared := fakeV2(t)
	fill(t, shared, "cgroup.type", "domain\n")
	fill(t, shared, "cgroup.procs", "7\n0\n")
	_, err = New(Config{Root: shared})
	require.ErrorContains(t, err, "outside of this container")
	require.NoDirExists(t, filepath.Join(shared, "drover"))
	require.NoDirExists(t, filepath.Join(shared, vacatedLeaf))
	require.NoError(t, os.Remove(filepath.Join(root, "cgroup.type")))
	_, err = New(Config{Root: root})
	require.NoError(t, err, "a machine's root may have processes")
}

// TestRefusedControllers are done without, and told.
func TestRefusedControllers(t *testing.T) {
	t.Parallel()
	i := Info{Version: V2, Controllers: []string{"cpu", "memory", "pids"}, mounts: map[string]string{"": "/root"}}
	i.lack("cpu", "invalid argument")
	require.Equal(t, []string{"memory", "pids"}, i.Controllers)
	require.Equal(t, "invalid argument", i.Lacks("cpu"))
	require.Equal(t, "/root/cgroup.controllers does not list it", i.Lacks("cpuset"))
	require.Empty(t, i.Lacks("memory"))
	require.Equal(t, "it is not mounted", Info{Version: V1}.Lacks("memory"))
	require.Equal(t, []string{
		"no cpu cgroup controller (invalid argument): cpu is neither shared by weight nor limited",
		"no cpuset cgroup controller (/root/cgroup.controllers does not list it): reserved cores are not kept apart",
	}, i.Weaker())
}

func TestSurvey(t *testing.T) {
	t.Parallel()
	root := fakeV2(t)
	has, weaker := survey(root, "/")
	require.Equal(t, "v2: cpuset cpu memory pids", has)
	require.Empty(t, weaker)
	fill(t, root, "cgroup.controllers", "memory pids")
	has, weaker = survey(root, "/")
	require.Equal(t, "v2: memory pids", has)
	require.Len(t, weaker, 2)
	has, weaker = survey(t.TempDir(), "/")
	require.Equal(t, "none", has)
	require.Len(t, weaker, 1)
	require.Contains(t, weaker[0], "no cgroup tree is mounted")
}

func TestChildOnV2(t *testing.T) {
	t.Parallel()
	m, top := fakeManager(t)
	g, err := m.Create("g", Limits{}, 0)
	require.NoError(t, err)
	c, err := g.Child("x.1", Limits{MemoryMax: 4096, CPUShares: 1024}, 0)
	require.NoError(t, err)
	dir := filepath.Join(top, "task", "x.1")
	require.Equal(t, []string{dir}, c.Dirs())
	require.Equal(t, []string{dir}, c.SupervisedDirs())
	require.Equal(t, "4096", read(t, dir, "memory.max"))
	require.Equal(t, "39", read(t, dir, "cpu.weight"))
	require.Empty(t, read(t, dir, "pids.max"), "no limit was asked for")
	fill(t, dir, "memory.events", "oom_kill 2\n")
	require.Equal(t, uint64(2), c.OOMKills())
	fill(t, dir, "cgroup.procs", "5\n6\n")
	pids, err := g.Procs()
	require.NoError(t, err)
	require.Equal(t, []int{5, 6}, pids, "children's are the group's")
	found, err := g.FindChild("x.1")
	require.NoError(t, err)
	require.Equal(t, dir, found.Dirs()[0])
	_, err = g.FindChild("x.2")
	require.Error(t, err)
	_, err = g.Child("../x", Limits{}, 0)
	require.Error(t, err)
}

// TestAdoptOnV2 takes over the group that a process of somebody else's is in: on the fake tree, that of this process.
func TestAdoptOnV2(t *testing.T) {
	t.Parallel()
	m, _ := fakeManager(t)
	container := filepath.Join(m.info.mounts[""], "docker", "abc")
	for _, d := range []string{"", "init"} {
		fakeGroup(t, filepath.Join(container, d))
	}
	g := &Group{name: "abc", version: V2, byCtl: map[string]string{}}
	for _, path := range []string{"/docker/abc", "/docker/abc/init"} { // a second agent finds it moved already
		require.NoError(t, m.viewV2(g, path))
		require.NoError(t, g.divide(os.Getpid()))
		require.Equal(t, []string{container}, g.Dirs())
		require.Equal(t, strconv.Itoa(os.Getpid()), read(t, filepath.Join(container, "init"), "cgroup.procs"))
	}
	require.Error(t, m.viewV2(g, "/"))
	_, err := m.Adopt("abc", 1<<30)
	require.Error(t, err)
}

// TestUsageKeepsItsFiles from the second sample on, within the room that there is, and lets them go.
func TestUsageKeepsItsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fill(t, dir, "cpu.stat", "usage_usec 30\n")
	fill(t, dir, "memory.current", "160\n")
	m := &Groups{}
	m.room.Store(1)
	g := &Group{version: V2, dirs: []string{dir}, stats: openStats{room: &m.room}}
	for _, kept := range []int{0, 1, 1} {
		u, err := g.Usage()
		require.NoError(t, err)
		require.Equal(t, int64(160), u.Memory)
		require.Len(t, g.stats.files, kept)
	}
	g.Close()
	require.Empty(t, g.stats.files)
	require.Equal(t, int64(1), m.room.Load())
}

// TestViewOfContainers that docker's two cgroup drivers made, on both versions: their usage is read where they are.
func TestViewOfContainers(t *testing.T) {
	t.Parallel()
	v2, _ := fakeManager(t)
	v1Root := t.TempDir()
	for _, c := range []string{"cpu,cpuacct", "memory", "pids"} {
		fill(t, filepath.Join(v1Root, c), "tasks", "")
	}
	v1 := &Groups{info: Probe(v1Root)}
	for _, path := range []string{"/docker/abc", "/system.slice/docker-abc.scope", "/user.slice/user-1000.slice/docker-abc.scope"} {
		dir := filepath.Join(v2.info.mounts[""], path)
		fill(t, dir, "memory.current", "100\n")
		fill(t, dir, "memory.stat", "anon 70\nfile 30\n")
		g, err := v2.view("abc", parsePaths("0::"+path+"\n"))
		require.NoError(t, err)
		u, err := g.Usage()
		require.NoError(t, err)
		require.Equal(t, []int64{70, 70, 30}, []int64{u.Memory, u.RSS, u.Cache}, path)
		require.NoDirExists(t, filepath.Join(dir, adoptedInit), "nothing is made")

		fill(t, filepath.Join(v1Root, "memory", path), "memory.usage_in_bytes", "100\n")
		fill(t, filepath.Join(v1Root, "memory", path), "memory.stat", "cache 1\nrss 1\ntotal_cache 30\ntotal_rss 70\n")
		fill(t, filepath.Join(v1Root, "cpu,cpuacct", path), "cpuacct.usage_user", "5\n")
		g, err = v1.view("abc", parsePaths("12:pids:"+path+"\n5:memory:"+path+"\n4:cpu,cpuacct:"+path+"\n1:name=systemd:"+path+"\n0::/\n"))
		require.NoError(t, err)
		u, err = g.Usage()
		require.NoError(t, err)
		require.Equal(t, []int64{70, 70, 30, 5}, []int64{u.Memory, u.RSS, u.Cache, int64(u.CPUUser)}, path)
	}
	_, err := v2.view("abc", parsePaths("0::/../../elsewhere\n"))
	require.ErrorContains(t, err, "abc is in no cgroup of its own")
}
