package allocdir

import "golang.org/x/sys/unix"

const topDirectory = 0x20000 // FS_TOPDIR_FL

// scatter lets ext4 put each folder made in this one into another block group (chattr +T), because allocations have
// nothing to do with each other. Otherwise thousands of short-lived folders would share one group, and ext4 would search
// its table of inodes for each new one. Without a journal it also passes over all inodes that were deleted in the last
// minutes, which costs up to a millisecond each. Other file systems do not know the flag, and do not need it.
func scatter(path string) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err == nil && flags&topDirectory == 0 {
		_ = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags|topDirectory)) // best effort
	}
}
