package image

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Host is the reference of the machine's own programs.
const Host = "host"

// HostUser is the unprivileged user of the host image.
const HostUser = "user"

// hostTrees are the machine's directories which the host image shows: links are copied, directories are bound.
var hostTrees = []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// hostEtc are the files of /etc that programs need and that tell nothing about the machine's people. Trees are copied
// with their links; names may be patterns.
var hostEtc = []string{
	"alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl/certs", "ssl/openssl.cnf", "ca-certificates.conf",
	"pki/tls", "pki/ca-trust", "localtime", "timezone", "protocols", "services", "rpc", "ethertypes", "mime.types",
	"os-release", "debian_version", "redhat-release", "lsb-release", "terminfo", "inputrc", "bash.bashrc", "profile",
	"profile.d", "locale.alias", "locale.conf", "gai.conf", "host.conf", "magic", "fonts", "perl", "python3*", "java*",
	"maven", "nanorc", "vim", "shells", "login.defs", "skel",
}

// maxHostEtc bounds what is copied of one of hostEtc, in bytes.
const maxHostEtc = 16 << 20

// hostDirs are the directories that the host image has itself, parents before their children. Modes are octal as chmod
// takes them, with 0o1000 for the sticky bit.
var hostDirs = []struct {
	name string
	mode os.FileMode
}{
	{"alloc", 0o777},
	{"dev", 0o755},
	{"etc", 0o755},
	{"home", 0o755},
	{"home/" + HostUser, 0o755},
	{"local", 0o777},
	{"mnt", 0o755},
	{"opt", 0o755},
	{"proc", 0o555},
	{"root", 0o700},
	{"run", 0o755},
	{"secrets", 0o777},
	{"srv", 0o755},
	{"sys", 0o555},
	{"tmp", 0o1777},
	{"var", 0o755},
	{"var/cache", 0o755},
	{"var/lib", 0o755},
	{"var/log", 0o755},
	{"var/tmp", 0o1777},
}

// hostFiles are the generated files, by path from the root. They name no user, host or address of the machine. The
// sandbox driver mounts a sandbox's own hosts and resolv.conf over these.
var hostFiles = map[string]string{
	"etc/passwd": "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/:/usr/sbin/nologin\n" +
		HostUser + ":x:1000:1000:user:/home/" + HostUser + ":/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	"etc/group":         "root:x:0:\ndaemon:x:1:\ntty:x:5:\nstaff:x:50:\nusers:x:100:\n" + HostUser + ":x:1000:\nnogroup:x:65534:\n",
	"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
	"etc/hosts":         "127.0.0.1 localhost\n::1 localhost\n",
	"etc/resolv.conf":   "",
	"etc/hostname":      "runner\n",
	"etc/mtab":          "",
}

// prepareHost generates the files of the host image below dir, once for each state of the machine, and returns the
// image.
func prepareHost(dir string) (*Rootfs, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	digest, final, binds, err := generate(dir, Host, (*hostBuilder).build)
	if err != nil {
		return nil, fmt.Errorf("generating the host image: %w", err)
	}
	return &Rootfs{
		Ref: Host, Digest: digest, Lowers: []string{final}, Binds: binds,
		Config: Config{ // LC_CTYPE, not LANG: a program that sets its locale would open a dozen files first
			Env:     []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_CTYPE=C.UTF-8"},
			WorkDir: "/home/" + HostUser,
		},
	}, nil
}

// generate writes what build makes to a folder below dir, unless what it would make is there already. It returns its digest, the
// folder, and what must be bound.
func generate(dir, name string, build func(*hostBuilder) ([]Bind, error)) (digest, final string, binds []Bind, err error) {
	look := &hostBuilder{sum: sha256.New(), limit: maxHostEtc} // copies nothing
	if binds, err = build(look); err != nil {
		return "", "", nil, err
	}
	digest = hex.EncodeToString(look.sum.Sum(nil))
	final = filepath.Join(dir, name+"-"+digest[:16])
	if _, err := os.Stat(final); err != nil {
		if err := write(dir, final, build); err != nil {
			return "", "", nil, err
		}
	}
	return "sha256:" + digest, final, binds, nil
}

// write works in a temporary directory and renames it, so final is whole if it exists. Losing the race against another caller is
// no error: both directories have the same content.
func write(dir, final string, build func(*hostBuilder) ([]Bind, error)) error {
	tmp, err := os.MkdirTemp(dir, ".host-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // after the rename there is nothing
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := build(&hostBuilder{root: root, sum: sha256.New(), limit: maxHostEtc}); err != nil {
		return err
	}
	if err := os.Rename(tmp, final); err != nil && !errors.Is(err, fs.ErrExist) && !isNotEmpty(err) {
		return err
	}
	return nil
}

// hostBuilder goes over all that the image has; sum becomes its identity.
type hostBuilder struct {
	root *os.Root // nil = only look; it keeps a link that was copied from leading writes out of the image
	sum  hash.Hash
	// copied are the bytes of one tree, of which limit are taken; the rest is left out, and beyond tells it.
	copied, limit int64
	beyond        bool
	leave         map[string]bool // paths in the image that are not copied
}

// dry reports whether the builder only computes the identity, without writing files.
func (b *hostBuilder) dry() bool { return b.root == nil }

// note adds one line to the image's identity. Whatever shapes the image must be noted, or a changed machine keeps a
// stale image.
func (b *hostBuilder) note(format string, args ...any) { fmt.Fprintf(b.sum, format+"\n", args...) }

// build goes over the whole image in a fixed order, because the order shapes the identity. It returns what must be
// bound.
func (b *hostBuilder) build() ([]Bind, error) {
	if !b.dry() {
		if err := b.root.Chmod(".", 0o755); err != nil { // a root directory
			return nil, err
		}
	}
	for _, d := range hostDirs {
		if err := b.mkdir(d.name, d.mode); err != nil {
			return nil, err
		}
	}
	binds, err := b.trees()
	if err != nil {
		return nil, err
	}
	for _, pattern := range hostEtc {
		matches, err := filepath.Glob("/etc/" + pattern)
		if err != nil {
			return nil, err
		}
		for _, m := range matches {
			if err := b.copyTree("/etc", "etc", strings.TrimPrefix(m, "/etc/")); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(hostFiles)) { // in order, for the hash
		if err := b.file(name, []byte(hostFiles[name]), 0o644); err != nil {
			return nil, err
		}
	}
	return binds, nil
}

// mkdir makes a directory with exactly this mode, and the home with its owner (if we may).
func (b *hostBuilder) mkdir(name string, mode os.FileMode) error {
	b.note("dir %s %o", name, mode)
	if b.dry() {
		return nil
	}
	if err := b.root.Mkdir(name, 0o700); err != nil {
		return err
	}
	if name == "home/"+HostUser && os.Geteuid() == 0 {
		if err := b.root.Chown(name, 1000, 1000); err != nil {
			return err
		}
	}
	m := mode.Perm()
	if mode&0o1000 != 0 {
		m |= os.ModeSticky
	}
	return b.root.Chmod(name, m)
}

// trees returns the binds of the machine's program directories. On a merged /usr, /bin and its like are links and are
// copied as such.
func (b *hostBuilder) trees() ([]Bind, error) {
	var binds []Bind
	for _, name := range hostTrees {
		info, err := os.Lstat("/" + name)
		if err != nil {
			continue // not on this machine
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink("/" + name)
			if err != nil {
				return nil, err
			}
			if err := b.link(name, target); err != nil {
				return nil, err
			}
			continue
		}
		if err := b.mkdir(name, 0o755); err != nil {
			return nil, err
		}
		binds = append(binds, Bind{Source: "/" + name, Target: "/" + name})
	}
	return binds, nil
}

// link makes a symbolic link at a path relative to the image's root. The target is copied verbatim.
func (b *hostBuilder) link(name, target string) error {
	b.note("link %s %s", name, target)
	if b.dry() {
		return nil
	}
	return b.root.Symlink(target, name)
}

// file writes a small generated file. Its content is part of the identity, unlike that of copied files.
func (b *hostBuilder) file(name string, data []byte, mode os.FileMode) error {
	b.note("file %s %o %x", name, mode, sha256.Sum256(data))
	if b.dry() {
		return nil
	}
	return b.root.WriteFile(name, data, mode)
}

// copyTree copies a file or tree of the machine: regular files that everybody may read, links and directories.
func (b *hostBuilder) copyTree(from, to, name string) error {
	b.copied = 0
	top := filepath.Join(from, name)
	if !b.dry() {
		if err := b.root.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			return err
		}
	}
	return filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == top || errors.Is(err, fs.ErrPermission) {
				return nil // not on this machine, or not for everybody
			}
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(strings.TrimPrefix(path, from), "/"))
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // it went away
		}
		switch {
		case b.leave[target]:
		case d.IsDir() && info.Mode()&0o001 == 0:
			return fs.SkipDir // not for everybody
		case d.IsDir() && b.dry():
			return nil
		case d.IsDir():
			return b.root.MkdirAll(target, 0o755)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return b.link(target, to)
		case info.Mode().IsRegular() && info.Mode()&0o004 != 0:
			if b.copied += info.Size(); b.copied > b.limit {
				b.beyond = true
				return nil
			}
			b.note("copy %s %d %d", target, info.Size(), info.ModTime().UnixNano()) // as good as the content, and quick
			if b.dry() {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return b.root.WriteFile(target, data, 0o644|info.Mode()&0o111) // for everybody in the sandbox
		}
		return nil
	})
}
