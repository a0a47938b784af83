package drivertest

import (
	"io"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver"
)

// Programs that want what is outside. Each prints what it got.

// nothing runs a script as the task's root, and expects that it got nothing and that the runner lives on.
func (s *suite) nothing(h driver.Handle, script string) {
	s.t.Helper()
	spec := sh(script)
	spec.Privileged = true
	r := s.exec(h, spec)
	require.Empty(s.t, string(r.stdout), "%s", r.stderr)
	s.alive(h)
}

// reachSupervisor tries what would betray the supervisor's memory, environment or descriptors. Sockets are searched too: through one a
// task could command its own supervisor.
func reachSupervisor(s *suite) {
	s.nothing(s.pool(), `
for f in mem environ stack syscall; do head -c1 /proc/1/$f 2>/dev/null | grep -q . && echo /proc/1/$f; done
ls -l /proc/1/fd 2>/dev/null | grep -- '->'
find / -xdev -type s 2>/dev/null
true`)
}

// signalSupervisor: process 1 of a pid namespace gets no signal from inside that it has no handler for, not even KILL
// (pid_namespaces(7)).
func signalSupervisor(s *suite) {
	s.nothing(s.pool(), "kill -9 1; kill -TERM 1; kill -SEGV 1; kill -STOP 1; true")
}

// reachKernel opens what root could harm the whole machine with: kernel settings, devices, mounts, and control groups outside its own.
func reachKernel(s *suite) {
	s.nothing(s.pool(), `
for f in /proc/sysrq-trigger /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /proc/irq/default_smp_affinity \
	/sys/power/state /sys/kernel/uevent_helper; do
  [ -e $f ] && (: >> $f) 2>/dev/null && echo $f
done
for d in /dev/sda /dev/vda /dev/mem /dev/kmsg /dev/kvm; do (: < $d) 2>/dev/null && echo $d; done
mount -t tmpfs x /mnt 2>/dev/null && echo mounted
mount -o remount,rw /proc/sys 2>/dev/null && echo remounted
for d in /sys/fs/cgroup /sys/fs/cgroup/*; do [ -e $d/cgroup.procs ] && (echo $$ > $d/cgroup.procs) 2>/dev/null && echo "into $d"; done
true`)
}

// lookAround: a runner sees neither the machine's files nor the files and processes of a runner beside it.
func lookAround(s *suite) {
	secret := filepath.Join(s.root, "secret")
	require.NoError(s.t, os.WriteFile(secret, []byte("secret"), 0o644)) // anybody may read it who gets there
	one, two := s.pool(), s.pool()
	kept := sh("echo secret > /tmp/mine; (exec sleep 4242 > /dev/null 2>&1 &)")
	kept.KeepTree = true
	require.Zero(s.t, s.exec(one, kept).receipt.ExitCode)
	s.nothing(two, `
cat '`+secret+`' /tmp/mine 2>/dev/null
for p in /proc/[0-9]*; do grep -q 4242 $p/cmdline && [ "${p#/proc/}" != $$ ] && cat $p/comm | grep sleep; done 2>/dev/null
true`)
}

// plantedLinks: the agent reads and writes inside, where links lead nowhere else.
func plantedLinks(s *suite) {
	secret, victim := filepath.Join(s.root, "secret"), filepath.Join(s.root, "victim")
	require.NoError(s.t, os.WriteFile(secret, []byte("secret"), 0o644)) // as above
	h := s.pool()
	links := sh("ln -s '" + secret + "' /tmp/link; ln -s '" + s.root + "' /tmp/dir; ln -s / /tmp/top")
	links.Privileged = true
	require.Zero(s.t, s.exec(h, links).receipt.ExitCode)
	files := h.(driver.Filer).Files()
	for _, path := range []string{"/tmp/link", "/tmp/dir/secret", "/tmp/top" + secret, "/tmp/../../../.." + secret, "/proc/1/root" + secret} {
		_, r, err := files.Read(s.t.Context(), execution.FileRequest{Path: path, Privileged: true})
		if err != nil {
			continue
		}
		data, _ := io.ReadAll(r)
		require.NoError(s.t, r.Close())
		require.NotEqual(s.t, "secret", string(data), path)
	}
	_ = files.Apply(s.t.Context(), []execution.FileChange{{Path: "/tmp/dir/victim", Write: true, Data: []byte("x")}}) // refused, or inside
	require.NoFileExists(s.t, victim)
	s.alive(h)
}
