package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor/sandboxsetup"
)

// What of /proc is covered. Most of it is closed to a user namespace anyway, as it belongs to the machine's root. What tells
// how busy the machine is, or which it is, tells guests who else is on it: that is empty, or made up where programs need it.
// (The calls sysinfo and clock_gettime go on telling the machine's load, its free memory and the time since its start: programs
// could not do without. So what tells no more than they do is left, as each cover costs a start 6 µs.) /proc/sys must be
// read-only, because some of it (user.max_user_namespaces) belongs to the namespace.
var (
	maskedFiles = []string{
		"/proc/keys", "/proc/interrupts", "/proc/latency_stats", "/proc/sched_debug", "/proc/kallsyms", "/proc/1/cgroup",
		"/proc/cmdline", "/proc/config.gz", "/proc/diskstats", "/proc/partitions", "/proc/vmstat", "/proc/schedstat", "/proc/softirqs",
	}
	maskedDirs = []string{"/proc/acpi", "/proc/scsi", "/proc/pressure"}
	fixedPaths = []string{"/proc/sys"}
)

// procFolder is where the made up files lie, below the folder that sandboxes have as /dev, or the driver's where they have none.
const procFolder = ".proc"

// procOwner is a user that no sandbox has: its root may take files by their name, but does not see which there are.
const procOwner = 1 << 20

// procFiles are what is prepared for all sandboxes.
type procFiles struct {
	once               sync.Once
	err                error
	masked, maskedDirs []string    // those that this kernel has
	shared             [][2]string // made up, the same for all: name, and what it covers
	mu                 sync.Mutex  // held while one of memory is written
	made               sync.Map    // of memory's, by MB
}

// there are the paths that exist.
func there(paths []string) (list []string) {
	for _, p := range paths {
		if _, err := os.Lstat(p); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// machineStat is /proc/stat of a machine on which nothing ever ran.
func machineStat() string {
	const idle = " 0 0 0 0 0 0 0 0 0 0\n"
	text := "cpu " + idle
	for n := range runtime.NumCPU() {
		text += "cpu" + strconv.Itoa(n) + idle
	}
	return text + "intr 0\nctxt 0\nbtime " + bootTime() + "\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq" + idle
}

// bootTime is the machine's, from which programs compute when others were started.
func bootTime() string {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return "0"
	}
	_, rest, _ := bytes.Cut(data, []byte("\nbtime "))
	seconds, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(seconds)
}

// memoryInfo is /proc/meminfo of a machine with so much memory, in which nothing is used.
func memoryInfo(mb int64) string {
	free := []string{"MemTotal", "MemFree", "MemAvailable"}
	none := []string{
		"Buffers", "Cached", "SwapCached", "Active", "Inactive", "Active(anon)", "Inactive(anon)", "Active(file)", "Inactive(file)",
		"Unevictable", "Mlocked", "SwapTotal", "SwapFree", "Dirty", "Writeback", "AnonPages", "Mapped", "Shmem", "KReclaimable", "Slab",
		"SReclaimable", "SUnreclaim", "KernelStack", "PageTables", "CommitLimit", "Committed_AS",
	}
	var text []byte
	for _, key := range free {
		text = fmt.Appendf(text, "%-16s%8d kB\n", key+":", mb<<10)
	}
	for _, key := range none {
		text = fmt.Appendf(text, "%-16s%8d kB\n", key+":", 0)
	}
	return string(text)
}

// coverProc shows the sandbox a /proc that tells of itself.
func (d *Driver) coverProc(c *sandboxsetup.Config, m *mounter, spec *driver.Spec) error {
	dir, err := d.prepareDevices()
	if err != nil {
		return err
	}
	inDev := dir != ""
	if !inDev {
		dir = d.cfg.Dir
	}
	dir = filepath.Join(dir, procFolder)
	if err := d.prepareProc(dir); err != nil {
		return fmt.Errorf("preparing what is shown of /proc: %w", err)
	}
	c.MaskFiles, c.MaskDirs, c.ReadOnlyPaths = d.proc.masked, d.proc.maskedDirs, fixedPaths
	files := d.proc.shared
	if mb := max(spec.MemoryMB, spec.MemoryMaxMB); mb > 0 {
		name, err := d.memoryFile(dir, mb)
		if err != nil {
			return err
		}
		files = append(slices.Clip(files), [2]string{name, "/proc/meminfo"})
	}
	for _, f := range files {
		if inDev {
			c.StandIns = append(c.StandIns, [2]string{"/dev/" + procFolder + "/" + f[0], f[1]})
			continue
		}
		src, err := m.source(tree{path: filepath.Join(dir, f[0]), readOnly: true, foreign: true})
		if err != nil {
			return err
		}
		c.Binds = append(c.Binds, sandboxsetup.Bind{Source: src, Target: f[1], File: true, Late: true})
	}
	return nil
}

// prepareProc writes the files that all sandboxes share, once.
func (d *Driver) prepareProc(dir string) error {
	d.proc.once.Do(func() { d.proc.err = d.makeProc(dir) })
	return d.proc.err
}

// makeProc writes what is the same for all sandboxes, and finds out which of the paths to be masked this kernel has.
func (d *Driver) makeProc(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	if !d.rootless {
		if err := os.Chown(dir, procOwner, procOwner); err != nil {
			return err
		}
	}
	for _, f := range []struct{ name, over, text string }{
		{"loadavg", "/proc/loadavg", "0.00 0.00 0.00 1/1 1\n"},
		{"stat", "/proc/stat", machineStat()},
		{"boot_id", "/proc/sys/kernel/random/boot_id", "00000000-0000-4000-8000-000000000000\n"},
	} {
		if err := writeNew(filepath.Join(dir, f.name), f.text); err != nil {
			return err
		}
		d.proc.shared = append(d.proc.shared, [2]string{f.name, f.over})
	}
	d.proc.masked, d.proc.maskedDirs = there(maskedFiles), there(maskedDirs)
	return nil
}

// memoryFile makes that of a sandbox with so much memory, if there was none yet, and returns its name.
func (d *Driver) memoryFile(dir string, mb int64) (string, error) {
	if name, known := d.proc.made.Load(mb); known {
		return name.(string), nil // nothing else is stored
	}
	d.proc.mu.Lock() // one writes it: a start that came second would replace what the first is about to mount
	defer d.proc.mu.Unlock()
	if name, known := d.proc.made.Load(mb); known {
		return name.(string), nil // nothing else is stored
	}
	name := "meminfo-" + strconv.FormatInt(mb, 10)
	if err := writeNew(filepath.Join(dir, name), memoryInfo(mb)); err != nil {
		return "", err
	}
	d.proc.made.Store(mb, name)
	return name, nil
}

// writeNew puts a file in its place in one step, unless it is there as it should be: a sandbox that is just starting could not
// mount what was replaced.
func writeNew(path, text string) error {
	same := func() bool {
		there, err := os.ReadFile(path)
		return err == nil && string(there) == text
	}
	if same() {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // what is left of it: a second name, or all
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(0o444), f.Close()); err != nil {
		return err
	}
	if os.Link(f.Name(), path) == nil || same() { // another driver in this folder may have been first
		return nil
	}
	return os.Rename(f.Name(), path)
}
