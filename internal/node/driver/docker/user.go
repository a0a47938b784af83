package docker

import (
	"archive/tar"
	"context"
	"io"
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

// userName is the job's user, else the image's; "" is root in both.
func userName(spec *driver.Spec, img images.Image) string {
	if spec.User != "" {
		return spec.User
	}
	return img.User
}

// withoutRights is whom unprivileged executions in a warm runner act as when its image says nothing, or root.
const withoutRights = 1000

// defaultUser is whom executions and file requests act as unless they say otherwise: the task's user. In a warm runner
// it is never root by default, as in the sandbox driver. Errors: Invalid for a user that the image does not have.
func (d *Driver) defaultUser(ctx context.Context, spec *driver.Spec, img images.Image, id string) (supervisor.User, error) {
	u, err := d.lookup(ctx, userName(spec, img), id)
	if err == nil && u.UID == 0 && spec.Pool && spec.User == "" {
		u = supervisor.User{UID: withoutRights, GID: withoutRights}
	}
	return u, err
}

// lookup resolves "", "name", "uid", with ":group" or without, in the container's files.
func (d *Driver) lookup(ctx context.Context, who, id string) (supervisor.User, error) {
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
	line, err := d.account(ctx, id, "/etc/passwd", func(f []string) bool { return f[0] == name || !named && len(f) > 2 && f[2] == name })
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
		return d.group(ctx, user, group, id)
	}
	return user, nil
}

// group sets the user's group by its number or its name in the container's file. Errors: Invalid for a name that is not there.
func (d *Driver) group(ctx context.Context, user supervisor.User, group, id string) (supervisor.User, error) {
	if gid, err := strconv.ParseUint(group, 10, 32); err == nil {
		user.GID = uint32(gid)
		return user, nil
	}
	line, err := d.account(ctx, id, "/etc/group", func(f []string) bool { return f[0] == group })
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

// maxAccountFile is how much of a file of users is read: an image may say anything in it.
const maxAccountFile = 1 << 20

// account finds a line of a file of the created container; nil if there is none.
func (d *Driver) account(ctx context.Context, id, file string, match func([]string) bool) ([]string, error) {
	r, err := d.docker.CopyFromContainer(ctx, id, client.CopyFromContainerOptions{SourcePath: file})
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
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) >= 4 && match(f) {
			return f, nil
		}
	}
	return nil, nil
}
