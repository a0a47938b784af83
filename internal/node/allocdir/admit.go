package allocdir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// The kernel's form of an access list (linux/posix_acl_xattr.h).
const (
	accessList    = "system.posix_acl_access"
	accessVersion = 2
	noID          = 1<<32 - 1
)

// The tags of its entries.
const (
	ownerEntry = 0x01
	userEntry  = 0x02
	groupEntry = 0x04
	maskEntry  = 0x10
	otherEntry = 0x20
)

// Admit lets a user pass through the allocation's folder, which else is closed to all but the agent. It is for tasks that come
// to their folders by path, and not as the agent's user. Where the file system has no access lists, all may pass.
func (d Dir) Admit(uid uint32) error {
	if int(uid) == os.Geteuid() {
		return nil
	}
	users := append(d.admitted(), uid)
	slices.Sort(users)
	err := unix.Setxattr(d.Path(), accessList, passFor(slices.Compact(users)), 0)
	if errors.Is(err, unix.ENOTSUP) {
		err = os.Chmod(d.Path(), 0o711) // then there is no other way
	}
	if err != nil {
		return fmt.Errorf("letting user %d into the allocation's folder: %w", uid, err)
	}
	return nil
}

// Shut takes back what Admit gave, once the tasks have ended. Idempotent.
func (d Dir) Shut() error {
	info, err := os.Lstat(d.Path())
	if err != nil || !open(info) {
		return nil //nolint:nilerr // it is not there
	}
	return os.Chmod(d.Path(), 0o700) // which is also the mask of the access list
}

// open reports whether others than the agent may pass through a folder.
func open(folder os.FileInfo) bool { return folder.Mode()&0o077 != 0 }

// admitted lists the users of the folder's access list.
func (d Dir) admitted() (users []uint32) {
	list := make([]byte, 4096)
	n, err := unix.Getxattr(d.Path(), accessList, list)
	if err != nil {
		return nil // it has none
	}
	for at := 4; at+8 <= n; at += 8 {
		if binary.LittleEndian.Uint16(list[at:]) == userEntry {
			users = append(users, binary.LittleEndian.Uint32(list[at+4:]))
		}
	}
	return users
}

// passFor is the access list of a folder that is its owner's, and that these, sorted, may pass through.
func passFor(users []uint32) []byte {
	const all, pass, none = 7, 1, 0
	list := binary.LittleEndian.AppendUint32(nil, accessVersion)
	entry := func(tag, permissions uint16, id uint32) {
		list = binary.LittleEndian.AppendUint16(list, tag)
		list = binary.LittleEndian.AppendUint16(list, permissions)
		list = binary.LittleEndian.AppendUint32(list, id)
	}
	entry(ownerEntry, all, noID)
	for _, u := range users {
		entry(userEntry, pass, u)
	}
	entry(groupEntry, none, noID)
	entry(maskEntry, pass, noID)
	entry(otherEntry, none, noID)
	return list
}
