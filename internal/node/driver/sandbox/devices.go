package sandbox

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor/sandboxsetup"
)

// deviceNodes of /dev.
var deviceNodes = []struct {
	name         string
	major, minor uint32
}{{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}}

// deviceLinks are those of every container; ptmx leads to the sandbox's own terminals.
var deviceLinks = [][2]string{
	{"ptmx", "pts/ptmx"},
	{"fd", "/proc/self/fd"},
	{"stdin", "/proc/self/fd/0"},
	{"stdout", "/proc/self/fd/1"},
	{"stderr", "/proc/self/fd/2"},
	{"core", "/proc/kcore"},
}

// devices is one folder with real device nodes that all sandboxes mount read-only as /dev: one mount instead of seven. It lies in memory,
// on a mount that nothing shows, because a sandbox can read which part of which file system its mounts are. Where the kernel (before
// 6.15) does not clone such a mount, it lies in the driver's folder.
type devices struct {
	once sync.Once
	dir  string   // "" = it cannot be: each node is bound by itself
	tree *os.File // of the mount in memory; nil = dir is an ordinary folder
	err  error
}

// prepareDevices makes the folder.
func (d *Driver) prepareDevices() (string, error) {
	d.devices.once.Do(func() {
		if d.rootless {
			return
		}
		if tree := memoryTree(); tree != nil {
			if dir := fmt.Sprintf("/proc/self/fd/%d", tree.Fd()); makeDevices(dir) == nil && devicesWork(dir) {
				d.devices.dir, d.devices.tree = dir, tree
				return
			}
			_ = tree.Close()
		}
		dir := filepath.Join(d.cfg.Dir, "dev")
		if d.devices.err = makeDevices(dir); d.devices.err == nil && devicesWork(dir) {
			d.devices.dir = dir
		}
	})
	return d.devices.dir, d.devices.err
}

// memoryTree makes a file system that is mounted nowhere; nil if the kernel cannot, or cannot clone it.
func memoryTree() *os.File {
	config, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil
	}
	defer unix.Close(config)
	for key, value := range map[string]string{"source": "dev", "size": "4m", "mode": "0755"} {
		if unix.FsconfigSetString(config, key, value) != nil {
			return nil
		}
	}
	if unix.FsconfigCreate(config) != nil {
		return nil
	}
	fd, err := unix.Fsmount(config, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_NOSUID)
	if err != nil {
		return nil
	}
	tree := os.NewFile(uintptr(fd), "dev")
	copied, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		_ = tree.Close()
		return nil
	}
	_ = unix.Close(copied)
	return tree
}

// makeDevices fills the folder, also where an earlier agent began to. The mode is set apart, since mknod's is cut by the umask.
func makeDevices(dir string) error {
	for _, sub := range []string{"pts", "shm", "mqueue"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return fmt.Errorf("making the devices' folder: %w", err)
		}
	}
	for _, n := range deviceNodes {
		path := filepath.Join(dir, n.name)
		err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(n.major, n.minor)))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making device %s: %w", n.name, err)
		}
		if err := os.Chmod(path, 0o666); err != nil { // null and its like
			return err
		}
	}
	for _, l := range deviceLinks {
		if err := os.Symlink(l[1], filepath.Join(dir, l[0])); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// devicesWork is false on a file system mounted nodev.
func devicesWork(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, "null"), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// addDevices gives the sandbox its /dev, with the devices that its task was given.
func (d *Driver) addDevices(c *sandboxsetup.Config, m *mounter, given []driver.DeviceNode) error {
	for _, n := range given {
		if _, err := deviceNumber(n); err != nil {
			return err
		}
	}
	dir, err := d.prepareDevices()
	if err != nil {
		return err
	}
	c.DevPTS = "newinstance,ptmxmode=0666,mode=0620"
	if !d.rootless { // whose only group is 0
		c.DevPTS += ",gid=5"
	}
	shm := sandboxsetup.Scratch{Target: "/dev/shm", Mode: 0o1777}
	if dir != "" {
		src, err := m.devices(dir)
		if len(given) > 0 {
			src, err = d.ownDevices(m, given)
		}
		if err != nil {
			return err
		}
		c.Binds = append(c.Binds, sandboxsetup.Bind{Source: src, Target: "/dev"})
		c.Scratch = append(c.Scratch, shm)
		return nil
	}
	c.Scratch = append(c.Scratch, shm)
	c.Links = append(c.Links, deviceLinks...)
	for _, n := range deviceNodes {
		src, err := m.source(tree{path: "/dev/" + n.name, devices: true})
		if err != nil {
			return err
		}
		c.Binds = append(c.Binds, sandboxsetup.Bind{Source: src, Target: "/dev/" + n.name, File: true})
	}
	for _, n := range given {
		src, err := m.source(tree{path: n.Source, devices: true})
		if err != nil {
			return err
		}
		c.Binds = append(c.Binds, sandboxsetup.Bind{Source: src, Target: n.Target, File: true})
	}
	return nil
}

// GivesDevices implements driver.Devicer.
func (d *Driver) GivesDevices() string { return "" }

// ownDevices is a /dev with the task's devices, that no other sandbox has. Everybody in the sandbox may use them: on the machine they
// belong to groups that it does not know. What they are is read now, so a device that went away is an error.
func (d *Driver) ownDevices(m *mounter, given []driver.DeviceNode) (sandboxsetup.Source, error) {
	as := tree{readOnly: true, devices: true}
	if memory := memoryTree(); memory != nil {
		defer memory.Close()
		dir := fmt.Sprintf("/proc/self/fd/%d", memory.Fd())
		if err := addNodes(dir, given); err != nil {
			return sandboxsetup.Source{}, err
		}
		if devicesWork(dir) {
			fd, err := m.clone(int(memory.Fd()), as)
			if err != nil {
				return sandboxsetup.Source{}, fmt.Errorf("cloning /dev: %w", err)
			}
			return sandboxsetup.Source{FD: m.add(fd)}, nil
		}
	}
	var err error
	if as.path, err = givenFolder(d.cfg.Dir, given); err != nil {
		return sandboxsetup.Source{}, err
	}
	if !devicesWork(as.path) {
		return sandboxsetup.Source{}, drover.Errorf(drover.NotImplemented,
			"device files do not work in %s: its file system is mounted nodev", as.path)
	}
	return m.source(as)
}

// givenFolder makes a folder with the devices below dir; one serves all tasks with the same devices. Its device files are everybody's, so
// it lies where no other user of the machine comes.
func givenFolder(dir string, given []driver.DeviceNode) (string, error) {
	h := fnv.New64a()
	for _, n := range given {
		number, err := deviceNumber(n)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(h, "%s=%x ", n.Target, number)
	}
	closed := filepath.Join(dir, "given")
	if err := os.MkdirAll(closed, 0o700); err != nil {
		return "", fmt.Errorf("making the devices' folder: %w", err)
	}
	path := filepath.Join(closed, fmt.Sprintf("dev-%x", h.Sum64()))
	return path, addNodes(path, given)
}

// addNodes fills a folder that is to be /dev.
func addNodes(dir string, given []driver.DeviceNode) error {
	if err := makeDevices(dir); err != nil {
		return err
	}
	for _, n := range given {
		number, err := deviceNumber(n)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, strings.TrimPrefix(n.Target, "/dev/"))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(number)); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making device %s: %w", n.Target, err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// deviceNumber is which device a file is. Errors: NotFound, Invalid where it is none.
func deviceNumber(n driver.DeviceNode) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(n.Source, &st); err != nil {
		return 0, drover.Errorf(drover.NotFound, "device %s: %w", n.Target, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || !strings.HasPrefix(n.Target, "/dev/") || filepath.Clean(n.Target) != n.Target {
		return 0, drover.Errorf(drover.Invalid, "device %s: it is no device file", n.Target)
	}
	return st.Rdev, nil
}
