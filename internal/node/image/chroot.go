package image

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/validation"
)

// Chroot is Rootfs.Ref of what Chroot makes. No job can name it: it is no reference.
const Chroot = "chroot env"

// DefaultTrees is what of the machine a task of Nomad's driver exec sees unless chroot_env says otherwise.
func DefaultTrees() map[string]string {
	trees := map[string]string{}
	for _, dir := range []string{"/bin", "/etc", "/lib", "/lib32", "/lib64", "/run/resolvconf", "/sbin", "/usr"} {
		trees[dir] = dir
	}
	return trees
}

// ownEtc are files of /etc that a task has of its own: the machine's are not copied.
var ownEtc = []string{"etc/hosts", "etc/resolv.conf", "etc/hostname", "etc/mtab"}

// PrepareTrees makes an image of parts of the machine, by path: where a task sees them. What is not there is left out. What lies
// below /etc is copied, as far as everybody may read it; everything else is bound, read-only. It is generated again when /etc or the
// machine's users have changed. Its Release does nothing. Errors: Invalid.
func (s *Store) PrepareTrees(trees map[string]string) (*Rootfs, error) {
	key, now := fmt.Sprint(trees), [...]time.Time{stamp("/etc"), stamp("/etc/passwd"), stamp("/etc/group"), stamp("/etc/ld.so.cache")}
	s.mu.Lock()
	defer s.mu.Unlock()
	made, ok := s.chroots[key]
	if !ok || made.state != now {
		rootfs, err := prepareTrees(filepath.Join(s.opts.Dir, "host"), trees)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "chroot_env: %w", err)
		}
		made = chroot{now, *rootfs}
		s.chroots[key] = made
	}
	r := made.rootfs
	return &r, nil
}

// chroot is an image of parts of the machine, and when what it was made of had been changed.
type chroot struct {
	state  [4]time.Time
	rootfs Rootfs
}

// stamp is when a file was changed; the zero time if it is not there.
func stamp(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func prepareTrees(dir string, trees map[string]string) (*Rootfs, error) {
	if err := validation.ChrootPaths(trees); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	digest, final, binds, err := generate(dir, "chroot", func(b *hostBuilder) ([]Bind, error) { return b.buildTrees(trees) })
	if err != nil {
		return nil, err
	}
	return &Rootfs{
		Ref: Chroot, Digest: digest, Lowers: []string{final}, Binds: binds,
		Config: Config{Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, WorkDir: "/"},
	}, nil
}

// buildTrees is build for parts of the machine.
func (b *hostBuilder) buildTrees(trees map[string]string) ([]Bind, error) {
	b.leave = map[string]bool{}
	for _, name := range ownEtc {
		b.leave[name] = true
	}
	if !b.dry() {
		if err := b.root.Chmod(".", 0o755); err != nil {
			return nil, err
		}
	}
	made := map[string]bool{}
	for _, d := range hostDirs {
		if made[d.name] = true; strings.HasPrefix(d.name, "home/") {
			continue // that of the host image's user
		}
		if err := b.mkdir(d.name, d.mode); err != nil {
			return nil, err
		}
	}
	var binds []Bind
	// By target: what holds others comes before them.
	for _, source := range slices.SortedFunc(maps.Keys(trees), func(x, y string) int { return strings.Compare(trees[x]+x, trees[y]+y) }) {
		bind, err := b.tree(filepath.Clean(source), trees, trees[source], binds, made)
		if err != nil {
			return nil, err
		}
		if bind != nil {
			binds = append(binds, *bind)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(hostFiles)) {
		if !b.leave[name] && b.shown(trees, "/"+name) {
			continue // the machine's own
		}
		if err := b.file(name, []byte(hostFiles[name]), 0o644); err != nil {
			return nil, err
		}
	}
	return binds, nil
}

// shown reports whether the trees have a copy of a file that everybody may read.
func (b *hostBuilder) shown(trees map[string]string, name string) bool {
	for source, target := range trees {
		rest, below := strings.CutPrefix(name, target)
		if !below || rest != "" && rest[0] != '/' {
			continue
		}
		if info, err := os.Stat(source + rest); err == nil && info.Mode().IsRegular() && info.Mode()&0o004 != 0 {
			return true
		}
	}
	return false
}

// tree adds one part of the machine, and returns it if it is to be bound: nil for what is copied, or not there.
func (b *hostBuilder) tree(source string, trees map[string]string, target string, binds []Bind, made map[string]bool) (*Bind, error) {
	name := target[1:]
	if slices.Contains(above(trees, source), target) {
		return nil, nil // what holds it brings it along
	}
	real, err := filepath.EvalSymlinks(source)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // as Nomad has it
	}
	if err != nil {
		return nil, err
	}
	if link, err := os.Readlink(source); err == nil && source == target && (trees[real] == real || slices.Contains(above(trees, real), real)) {
		return nil, b.link(name, link)
	}
	if err := b.parents(name, made); err != nil {
		return nil, err
	}
	if real == "/etc" || strings.HasPrefix(real, "/etc/") {
		if err := b.copyTree(real, name, "."); err != nil {
			return nil, err
		}
		if b.beyond {
			return nil, fmt.Errorf("%s has more than %d MB of files that everybody may read: name the parts of it that tasks need", source,
				b.limit>>20)
		}
		return nil, nil
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, err
	}
	bind := &Bind{Source: real, Target: target, File: !info.IsDir()}
	if over, rest := within(binds, target); over != nil {
		if _, err := os.Stat(filepath.Join(over.Source, rest)); err != nil {
			return nil, fmt.Errorf("%s cannot be shown at %s: %s, which is shown there read-only, has no %s", source, target, over.Source, rest)
		}
		return bind, nil
	}
	return bind, b.mountPoint(name, bind.File, made)
}

// within returns the first bind that has the target below it, and the target's path in there; nil if none has.
func within(binds []Bind, target string) (over *Bind, rest string) {
	for i := range binds {
		if rest, below := strings.CutPrefix(target, binds[i].Target+"/"); below {
			return &binds[i], rest
		}
	}
	return nil, ""
}

// mountPoint makes the empty file or directory that a bind needs, if the image has none there.
func (b *hostBuilder) mountPoint(name string, file bool, made map[string]bool) (err error) {
	there := made[name]
	if !b.dry() && !there {
		_, err := b.root.Lstat(name)
		there = err == nil
	}
	switch {
	case there: // one of the image's own, or copied
	case file:
		err = b.file(name, nil, 0o644)
	default:
		err = b.mkdir(name, 0o755)
	}
	made[name] = true
	return err
}

// above lists where a path of the machine is seen because a directory above it is.
func above(trees map[string]string, path string) (list []string) {
	for source, target := range trees {
		if rest, below := strings.CutPrefix(path, filepath.Clean(source)+"/"); below {
			list = append(list, filepath.Join(target, rest))
		}
	}
	slices.Sort(list)
	return list
}

// Inside is where a path of the machine is seen in an image of these trees; false if it is not.
func Inside(trees map[string]string, path string) (string, bool) {
	list := above(trees, path)
	if at, whole := trees[path]; whole {
		list = append(list, at)
	}
	if len(list) == 0 {
		return "", false
	}
	return list[len(list)-1], true
}

// parents makes what is above a path and not there yet.
func (b *hostBuilder) parents(name string, made map[string]bool) error {
	for i, c := range name {
		if c != '/' || made[name[:i]] {
			continue
		}
		if made[name[:i]] = true; !b.dry() {
			if _, err := b.root.Lstat(name[:i]); err == nil {
				continue // copied, or a link to what is
			}
		}
		if err := b.mkdir(name[:i], 0o755); err != nil {
			return err
		}
	}
	return nil
}
