package allocdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// secretsMB is a file system's size unless the task asks for another; Nomad's default.
	secretsMB   = 1
	secretsMode = 0o777 // as the folder has it that it covers
	secretsIdle = 64    // file systems that are kept for the next task
)

// secrets keeps the small file systems in memory that hold tasks' secrets. To make one costs the kernel a third of a
// millisecond, and to end it as much. So one in which nothing was left is kept for the next task, as mounting it costs
// only a tenth of that. Its methods may be called concurrently.
type secrets struct {
	mu    sync.Mutex
	idle  []int          // descriptors of file systems; guarded by mu
	used  map[string]int // by path; guarded by mu
	plain bool           // the kernel is before 6.15 and does not clone detached mounts, so that none is kept; guarded by mu
	why   string         // there are none; guarded by mu
	tried bool           // why is known; guarded by mu
}

// missing says why secrets lie on the disk, "" if they do not.
func (s *secrets) missing() string {
	if s == nil {
		return "it is not wanted"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason()
}

// reason is missing; the caller holds mu.
func (s *secrets) reason() string {
	if s.tried {
		return s.why
	}
	s.tried = true
	fd, err := newMemory(secretsMB)
	switch {
	case os.Geteuid() != 0:
		s.why = "the agent is not root"
	case err != nil:
		s.why = err.Error()
	default:
		s.idle = append(s.idle, fd)
	}
	return s.why
}

// mount covers the folder with a file system, unless it is covered, or has something in it.
func (s *secrets) mount(path string, mb int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason() != "" || covered(path) {
		return nil
	}
	if entries, err := os.ReadDir(path); err != nil || len(entries) > 0 {
		return err
	}
	fd, err := s.take(mb)
	if err != nil {
		return err
	}
	if !s.plain {
		err = attachClone(fd, path)
		s.plain = errors.Is(err, unix.EINVAL)
	}
	if s.plain {
		err = unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	if err != nil {
		_ = unix.Close(fd)
		return fmt.Errorf("mounting the secrets' file system at %s: %w", path, err)
	}
	if mb != secretsMB || s.plain {
		return unix.Close(fd)
	}
	s.used[path] = fd
	return nil
}

// take returns a file system; the caller holds mu.
func (s *secrets) take(mb int) (int, error) {
	if n := len(s.idle); n > 0 && mb == secretsMB {
		fd := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return fd, nil
	}
	fd, err := newMemory(mb)
	if err != nil {
		return -1, fmt.Errorf("making a file system for secrets: %w", err)
	}
	return fd, nil
}

// unmount uncovers the folder; what was in the file system is lost. Idempotent.
func (s *secrets) unmount(path string) error {
	var err error
	for covered(path) && err == nil {
		err = unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if fd, ok := s.used[path]; ok {
		delete(s.used, path)
		if len(s.idle) < secretsIdle && fresh(fd) {
			s.idle = append(s.idle, fd)
		} else {
			_ = unix.Close(fd)
		}
	}
	if err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("unmounting the secrets' file system at %s: %w", path, err)
	}
	return nil
}

// newMemory makes a file system that is mounted nowhere.
func newMemory(mb int) (int, error) {
	config, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(config)
	for key, value := range map[string]string{
		"source": "drover-secrets", "size": strconv.Itoa(mb) + "m", "mode": fmt.Sprintf("%o", secretsMode),
	} {
		if err := unix.FsconfigSetString(config, key, value); err != nil {
			return -1, err
		}
	}
	_ = unix.FsconfigSetFlag(config, "noswap") // since Linux 6.4
	if err := unix.FsconfigCreate(config); err != nil {
		return -1, err
	}
	return unix.Fsmount(config, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// attachClone mounts the file system on path and leaves the descriptor usable: the clone is mounted, so that the same
// file system can be taken back and used again.
func attachClone(fd int, path string) error {
	copied, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(copied)
	return unix.MoveMount(copied, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// covered reports whether something is mounted on the folder.
func covered(path string) bool {
	var here, above unix.Stat_t
	return unix.Lstat(path, &here) == nil && unix.Lstat(filepath.Dir(path), &above) == nil && here.Dev != above.Dev
}

// fresh reports whether nothing of its task was left in a file system.
func fresh(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Uid != 0 || st.Gid != 0 || st.Mode != unix.S_IFDIR|secretsMode {
		return false
	}
	path := "/proc/self/fd/" + strconv.Itoa(fd)
	if n, err := unix.Listxattr(path, nil); err != nil && !errors.Is(err, unix.ENOTSUP) || n > 0 {
		return false
	}
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

// SecretsInMemory returns the same folders with tasks' secrets in memory, where the machine can do that.
func (r Root) SecretsInMemory() Root {
	r.secrets = &secrets{used: map[string]int{}}
	return r
}

// SecretsOnDisk says why tasks' secrets are on the disk, and not in memory; "" if they are in memory.
func (r Root) SecretsOnDisk() string { return r.secrets.missing() }

// ShiftedSecretsOnDisk says why the secrets of tasks that see them with other owners are on the disk; "" if they are not.
func (r Root) ShiftedSecretsOnDisk() string {
	if why := r.SecretsOnDisk(); why != "" || shiftsMemory() {
		return why
	}
	return "kernels before 6.3 do not shift the owners of a file system in memory"
}

// MountSecrets puts a task's secrets folder, which is there, into memory where that can be: a file system of mb MiB (0: 1)
// in which nothing can be executed. It stays over a restart of the agent. shifted: the task sees it with other owners; see
// ShiftedSecretsOnDisk.
func (d Dir) MountSecrets(task string, mb int, shifted bool) error {
	if d.root.secrets == nil || shifted && d.root.ShiftedSecretsOnDisk() != "" {
		return nil
	}
	if mb <= 0 {
		mb = secretsMB
	}
	return d.root.secrets.mount(d.secrets(task), mb)
}

// UnmountSecrets ends what MountSecrets made. Idempotent.
func (d Dir) UnmountSecrets(tasks ...string) error {
	var errs []error
	for _, t := range tasks {
		if d.root.secrets == nil {
			break
		}
		errs = append(errs, d.root.secrets.unmount(d.secrets(t)))
	}
	return errors.Join(errs...)
}

// uncover unmounts the secrets of all tasks, also of those whose names are not known any more.
func (d Dir) uncover() error {
	entries, err := os.ReadDir(d.Path())
	if errors.Is(err, fs.ErrNotExist) || d.root.secrets == nil {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "alloc" {
			err = errors.Join(err, d.root.secrets.unmount(d.secrets(e.Name())))
		}
	}
	return err
}

// shiftsMemory reports whether the kernel can shift the owners of a tmpfs.
func shiftsMemory() bool {
	var u syscall.Utsname
	if syscall.Uname(&u) != nil {
		return false
	}
	var release strings.Builder
	for _, c := range u.Release {
		if c == 0 {
			break
		}
		release.WriteByte(byte(c))
	}
	var major, minor int
	if _, err := fmt.Sscanf(release.String(), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 6 || major == 6 && minor >= 3
}
