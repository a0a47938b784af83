package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// prepareBase returns the path of the layer that lies over every image but "host", and makes it the first time. It holds
// the directories and files on which a sandbox mounts, so they exist whatever the image did with these names. The layer
// is built beside its place and renamed, so concurrent callers and a crash leave a whole layer or none. The number in
// its name must grow when its content changes, since an existing layer is never rewritten.
func prepareBase(dir string) (string, error) {
	final := filepath.Join(dir, "base-2")
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	tmp, err := os.MkdirTemp(dir, ".base-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // after the rename there is nothing
	for _, d := range []struct {
		name string
		mode os.FileMode
	}{
		{".", 0o755},
		{"alloc", 0o777},
		{"dev", 0o755},
		{"etc", 0o755},
		{"local", 0o777},
		{"proc", 0o555},
		{"secrets", 0o777},
		{"sys", 0o555},
		{"tmp", 0o777 | os.ModeSticky},
	} {
		path := filepath.Join(tmp, d.name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return "", err
		}
		if err := os.Chmod(path, d.mode); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"hosts", "resolv.conf", "hostname"} {
		// for everybody in the sandbox
		if err := os.WriteFile(filepath.Join(tmp, "etc", name), []byte(hostFiles["etc/"+name]), 0o644); err != nil {
			return "", err
		}
	}
	if err := os.Rename(tmp, final); err != nil && !errors.Is(err, fs.ErrExist) && !isNotEmpty(err) {
		return "", fmt.Errorf("making the base layer: %w", err)
	}
	return final, nil
}
