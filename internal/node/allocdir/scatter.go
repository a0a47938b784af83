package allocdir

import "golang.org/x/sys/unix"

const topDirectory = 0x20000 // FS_TOPDIR_FL

// scatter lets ext4 put each folder made in this one into another block group (chattr +T): allocations have nothing to
// do with each other. Else thousands of folders that come and go share a group, whose table of inodes has to be
// searched through for each new one; without a journal also past all that were deleted in the last minutes, which costs
// up to a millisecond an inode. Other file systems do not know the flag, and do not need it.
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
