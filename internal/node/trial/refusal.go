package trial

import (
	"context"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// refusals are tried as the sandbox's root. Each script prints what it got: nothing, if it was refused. None of them
// does harm where it is not: files are opened for writing, and not written.
func refusals() []program {
	return []program{
		ofKernel("write to /proc and /sys", "the kernel's knobs cannot be opened for writing", `
for f in /proc/sysrq-trigger /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/vm/drop_caches \
 /proc/sys/user/max_user_namespaces /proc/sys/fs/file-max /proc/irq/default_smp_affinity /sys/power/state /sys/kernel/uevent_helper; do
  if (: >> $f) 2>/dev/null; then echo $f; fi
done`),
		ofKernel("read what is the kernel's", "keys, memory, log and symbols of the kernel are covered or empty", `
head -c1 /proc/kcore 2>/dev/null | grep -q . && echo /proc/kcore
head -c1 /dev/mem 2>/dev/null | grep -q . && echo /dev/mem
dmesg 2>/dev/null | grep -q . && echo dmesg
grep -v '^0000000000000000 ' /proc/kallsyms 2>/dev/null | grep -q . && echo /proc/kallsyms
true`),
		ofKernel("mount and unmount", "mount, remount, bind, umount and new namespaces are refused", `
mount -t tmpfs x /mnt 2>/dev/null && echo "mounted a tmpfs"
mount -t proc x /mnt 2>/dev/null && echo "mounted a proc"
mount --bind / /mnt 2>/dev/null && echo "bound /"
mount -o remount,rw /usr 2>/dev/null && echo "remounted /usr"
umount -l /proc/sys 2>/dev/null && echo "uncovered /proc/sys"
unshare -U true 2>/dev/null && echo "a user namespace"
unshare -m true 2>/dev/null && echo "a mount namespace"
nsenter -t 1 -m true 2>/dev/null && echo "entered the supervisor's namespace"
true`),
		ofKernel("make and open devices", "no device node but null, zero, full, random, tty", `
mknod /tmp/disk b 8 0 2>/dev/null; mknod /tmp/disk2 b 254 0 2>/dev/null; mknod /tmp/mem c 1 1 2>/dev/null
for d in /tmp/disk /tmp/disk2 /tmp/mem; do head -c1 $d 2>/dev/null | grep -q '' && echo "opened $d"; done
rm -f /tmp/disk /tmp/disk2 /tmp/mem
for d in /dev/sda /dev/vda /dev/nvme0n1 /dev/mem /dev/kmsg /dev/fuse /dev/kvm /dev/net/tun; do
  if (: < $d) 2>/dev/null; then echo $d; fi
done`),
		refusal("write to the machine's programs", "they are mounted read-only", `
for f in /usr/trial /usr/bin/trial /bin/trial /lib/trial /usr/lib/trial; do
  if (: > $f) 2>/dev/null; then echo $f; rm -f $f; fi
done`),
		{name: "gain rights by a setuid program", held: "set-user-id has no effect (no_new_privs)", run: setuid},
		refusal("reach the supervisor's socket", "it lies outside of what a sandbox sees", `
find / -xdev -type s 2>/dev/null
ls -l /proc/1/fd 2>/dev/null | grep -- '->'
ls /proc/1/root/ 2>/dev/null
grep -v '^Num' /proc/net/unix 2>/dev/null | grep -q '/s$' && cat /proc/net/unix
true`),
		refusal("signal the supervisor", "a namespace's first process takes no signal that it does not want", `
kill -9 1; kill -TERM 1; kill -SEGV 1; kill -STOP 1; true`),
		refusal("trace the supervisor", "its memory and calls cannot be read", `
head -c1 /proc/1/mem 2>/dev/null | grep -q . && echo mem
cat /proc/1/syscall 2>/dev/null | grep -q . && echo syscall
cat /proc/1/stack 2>/dev/null | grep -q . && echo stack
true`),
		refusal("read the supervisor's environment", "it cannot be read", `
cat /proc/1/environ 2>/dev/null | grep -q . && echo environ
true`),
		refusal("reach the machine's network", "there is only a loopback of its own", `
sed 1,2d /proc/net/dev | grep -v '^ *lo:'
sed 1d /proc/net/route | grep .
true`),
		{name: "see other sandboxes", held: "their processes and files cannot be seen", run: spy},
	}
}

// refusal makes a program of a shell script, which is run as the sandbox's root. held is told when the script prints
// nothing.
func refusal(name, held, script string) program {
	return program{name: name, held: held, run: func(ctx context.Context, t *trial) (string, State, error) {
		r, err := t.evil.run(ctx, true, script, drover.Limits{Wall: patience / 2})
		return got(r.stdout), Contained, err
	}}
}

// ofKernel is a refusal by the kernel that runs it.
func ofKernel(name, held, script string) program {
	p := refusal(name, held, script)
	p.kernel = true
	return p
}

// got makes one line of what a script printed.
func got(lines string) string {
	if lines = strings.TrimSpace(lines); lines == "" {
		return ""
	}
	return "it got: " + strings.Join(strings.Fields(lines), " ")
}

// setuid makes a program that would make everybody root, as root of the sandbox. Then it compares what its ordinary user
// is with and without that program.
func setuid(ctx context.Context, t *trial) (string, State, error) {
	r, err := t.evil.run(ctx, true, "cp $(command -v id) /tmp/id && chown 0:0 /tmp/id && chmod 4755 /tmp/id; id -u", drover.Limits{})
	if err != nil {
		return "", Contained, err
	}
	before, err := t.evil.run(ctx, false, "id -u; id -G", drover.Limits{})
	if err != nil {
		return "", Contained, err
	}
	after, err := t.evil.run(ctx, false, "/tmp/id -u; /tmp/id -G", drover.Limits{})
	if r.receipt.ExitCode == 0 && after.receipt.ExitCode == 0 && before.stdout != after.stdout {
		return got("uid " + after.stdout + " instead of " + before.stdout), Contained, err
	}
	return "", Contained, err
}

// spy looks for what the neighbour does.
func spy(ctx context.Context, t *trial) (string, State, error) {
	_, err := t.neighbour.execute(ctx, execution.Spec{KeepTree: true, Argv: []string{
		"/bin/sh", "-c", "echo " + t.token + " | tee /tmp/mine > /dev/shm/mine; (exec sleep 30 > /dev/null 2>&1 &)", t.token,
	}})
	if err != nil {
		return "", Contained, err
	}
	r, err := t.evil.run(ctx, true, `cat /tmp/mine /dev/shm/mine 2>/dev/null
for p in /proc/[0-9]*; do n=${p#/proc/}; read -r name < $p/comm && [ "$name" = sleep ] && echo "process $n"; done 2>/dev/null
cat '`+t.secret+`' 2>/dev/null; true`, drover.Limits{})
	return got(r.stdout), Contained, err
}
