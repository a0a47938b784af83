package image

import (
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
)

// lookupUser implements Rootfs.LookupUser. A number without an entry in passwd is accepted, with the same number as its
// group. A group in spec replaces all of the user's own groups. Numbers end at 65535, the highest id of a sandbox.
func lookupUser(r *Rootfs, spec string) (uid, gid uint32, groups []uint32, err error) {
	if spec == "" {
		return 0, 0, nil, nil
	}
	name, group, hasGroup := strings.Cut(spec, ":")
	passwd, _ := readInLowers(r.Lowers, "etc/passwd")
	groupFile, _ := readInLowers(r.Lowers, "etc/group")
	number, numErr := strconv.ParseUint(name, 10, 16)
	found := false
	for line := range strings.Lines(string(passwd)) {
		f := fields(line)
		if len(f) < 4 || (f[0] != name && (numErr != nil || f[2] != name)) {
			continue
		}
		u, err1 := strconv.ParseUint(f[2], 10, 16)
		g, err2 := strconv.ParseUint(f[3], 10, 16)
		if err1 == nil && err2 == nil {
			uid, gid, found, name = uint32(u), uint32(g), true, f[0]
			break
		}
	}
	if !found {
		if numErr != nil {
			return 0, 0, nil, drover.Errorf(drover.Invalid, "unknown user %q: the image's /etc/passwd does not have it", spec)
		}
		uid, gid = uint32(number), uint32(number)
	}
	if hasGroup {
		gid, err = lookupGroup(string(groupFile), group)
		return uid, gid, nil, err
	}
	return uid, gid, memberships(string(groupFile), name), nil
}

// lookupGroup returns the id of a group by number or by its name in the text of an /etc/group. Errors: Invalid.
func lookupGroup(file, name string) (uint32, error) {
	if n, err := strconv.ParseUint(name, 10, 16); err == nil {
		return uint32(n), nil
	}
	for line := range strings.Lines(file) {
		if f := fields(line); len(f) > 2 && f[0] == name {
			if n, err := strconv.ParseUint(f[2], 10, 16); err == nil {
				return uint32(n), nil
			}
		}
	}
	return 0, drover.Errorf(drover.Invalid, "unknown group %q: the image's /etc/group does not have it", name)
}

// memberships returns the ids of the groups that list the user by name; malformed lines are skipped.
func memberships(file, name string) []uint32 {
	var groups []uint32
	for line := range strings.Lines(file) {
		f := fields(line)
		if len(f) < 4 || !slices.Contains(strings.Split(f[3], ","), name) {
			continue
		}
		if n, err := strconv.ParseUint(f[2], 10, 16); err == nil {
			groups = append(groups, uint32(n))
		}
	}
	return groups
}
