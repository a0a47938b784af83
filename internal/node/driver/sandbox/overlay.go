package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Overlay reports whether the kernel has the overlay file system, or will load it at the first mount. In most distributions it is a
// module, and on a fresh machine nothing has loaded it yet.
func Overlay() bool {
	var u unix.Utsname
	_ = unix.Uname(&u) // it cannot fail
	return overlay("/", unix.ByteSliceToString(u.Release[:]), askKernel)
}

// overlay looks in a machine's root. Whoever may mount has the kernel load the module by asking for it.
func overlay(root, release string, ask func() error) bool {
	err := ask()
	if err == nil || errors.Is(err, unix.ENODEV) {
		return err == nil
	}
	// We may not mount here; in our own user namespace we may, which loads it too.
	systems, err := os.ReadFile(filepath.Join(root, "proc/filesystems"))
	if err != nil || strings.Contains(string(systems)+"\n", "\toverlay\n") {
		return true // a kernel that does not tell is tried
	}
	modules, _ := os.ReadFile(filepath.Join(root, "lib/modules", release, "modules.dep"))
	return strings.Contains(string(modules), "/overlay.ko")
}

// askKernel opens a context of the file system, which loads its module, and mounts nothing. ENODEV says that there is no such file
// system.
func askKernel() error {
	fd, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
