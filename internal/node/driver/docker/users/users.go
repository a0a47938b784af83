package users

import (
	"archive/tar"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/dockererr"
	"github.com/drover-project/drover/internal/node/driver/docker/images"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// Files are those of a created container that say who its users are.
type Files struct {
	Client    *client.Client
	Container string
}

// Name is the job's user, else the image's; "" is root in both.
func Name(spec *driver.Spec, img images.Image) string {
	if spec.User != "" {
		return spec.User
	}
	return img.User
}

// withoutRights is whom unprivileged executions in a warm runner act as when its image says nothing, or root.
const withoutRights = 1000

// Default is whom executions and file requests act as unless they say otherwise: the task's user. In a warm runner
// it is never root by default, as in the sandbox driver. Errors: Invalid for a user that the image does not have.
func (f Files) Default(ctx context.Context, spec *driver.Spec, img images.Image) (supervisor.User, error) {
	u, err := f.lookup(ctx, Name(spec, img))
	if err == nil && u.UID == 0 && spec.Pool && spec.User == "" {
		u = supervisor.User{UID: withoutRights, GID: withoutRights}
	}
	return u, err
}

// lookup resolves "", "name", "uid", with ":group" or without, in the container's files.
func (f Files) lookup(ctx context.Context, who string) (supervisor.User, error) {
	name, group, hasGroup := strings.Cut(who, ":")
	if name == "" {
		return supervisor.User{}, nil
	}
	user := supervisor.User{}
	uid, err := strconv.ParseUint(name, 10, 32)
	user.UID = uint32(uid)
	// Two numbers need no file, so images without one, such as those from scratch, can have users.
	if err == nil && hasGroup {
		if gid, err := strconv.ParseUint(group, 10, 32); err == nil {
			user.GID = uint32(gid)
			return user, nil
		}
	}
	named := err != nil
	line, err := f.account(ctx, "/etc/passwd", func(l []string) bool { return l[0] == name || !named && len(l) > 2 && l[2] == name })
	switch {
	case err != nil:
		return user, err
	case line == nil && named:
		return user, drover.Errorf(drover.Invalid, "unknown user %q", name)
	case line != nil:
		uid, err1 := strconv.ParseUint(line[2], 10, 32)
		gid, err2 := strconv.ParseUint(line[3], 10, 32)
		if err1 != nil || err2 != nil {
			return user, drover.Errorf(drover.Invalid, "user %q has no numbers in the image's passwd file", name)
		}
		user.UID, user.GID = uint32(uid), uint32(gid)
	}
	if hasGroup {
		return f.group(ctx, user, group)
	}
	return user, nil
}

// group sets the user's group by its number or its name in the container's file. Errors: Invalid for a name that is not there.
func (f Files) group(ctx context.Context, user supervisor.User, group string) (supervisor.User, error) {
	if gid, err := strconv.ParseUint(group, 10, 32); err == nil {
		user.GID = uint32(gid)
		return user, nil
	}
	line, err := f.account(ctx, "/etc/group", func(l []string) bool { return l[0] == group })
	if err != nil {
		return user, err
	}
	if line == nil {
		return user, drover.Errorf(drover.Invalid, "unknown group %q", group)
	}
	gid, err := strconv.ParseUint(line[2], 10, 32)
	if err != nil {
		return user, drover.Errorf(drover.Invalid, "group %q has no number in the image's group file", group)
	}
	user.GID = uint32(gid)
	return user, nil
}

// Groups are those that the user has in the image, and those that the job adds by number or by their name in the image. Errors:
// Invalid for a name that is not there.
func (f Files) Groups(ctx context.Context, user supervisor.User, add []string) ([]uint32, error) {
	accounts, err := f.accounts(ctx, "/etc/passwd")
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, l := range accounts {
		if l[2] == strconv.FormatUint(uint64(user.UID), 10) {
			names[l[0]] = true
		}
	}
	known, err := f.accounts(ctx, "/etc/group")
	if err != nil {
		return nil, err
	}
	out, numbers := []uint32{user.GID}, map[string]uint32{}
	for _, l := range known {
		n, err := strconv.ParseUint(l[2], 10, 32)
		if err != nil {
			continue
		}
		numbers[l[0]] = uint32(n)
		if slices.ContainsFunc(strings.Split(l[3], ","), func(member string) bool { return names[member] }) {
			out = append(out, uint32(n))
		}
	}
	for _, group := range add {
		n, err := strconv.ParseUint(group, 10, 32)
		number, named := numbers[group]
		switch {
		case err == nil:
			out = append(out, uint32(n))
		case named:
			out = append(out, number)
		default:
			return nil, drover.Errorf(drover.Invalid, "group_add: the image has no group %q", group)
		}
	}
	slices.Sort(out[1:])
	return slices.Compact(out), nil
}

// maxAccountFile is how much of a file of users is read: an image may say anything in it.
const maxAccountFile = 1 << 20

// account finds a line of a file of the created container; nil if there is none.
func (f Files) account(ctx context.Context, file string, match func([]string) bool) ([]string, error) {
	lines, err := f.accounts(ctx, file)
	if i := slices.IndexFunc(lines, match); i >= 0 {
		return lines[i], nil
	}
	return nil, err
}

// accounts are the lines of such a file, none if it is not there. Each has four fields at least.
func (f Files) accounts(ctx context.Context, file string) (list [][]string, err error) {
	r, err := f.Client.CopyFromContainer(ctx, f.Container, client.CopyFromContainerOptions{SourcePath: file})
	if cerrdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, dockererr.Of(err)
	}
	defer r.Content.Close()
	archive := tar.NewReader(r.Content)
	if _, err := archive.Next(); err != nil {
		return nil, drover.Errorf(drover.Unavailable, "reading %s of the image: %w", file, err)
	}
	text, err := io.ReadAll(io.LimitReader(archive, maxAccountFile))
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "reading %s of the image: %w", file, err)
	}
	for line := range strings.Lines(string(text)) {
		if l := strings.Split(strings.TrimSpace(line), ":"); len(l) >= 4 {
			list = append(list, l)
		}
	}
	return list, nil
}
