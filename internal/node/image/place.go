package image

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/drover-project/drover"
)

// place is a directory of a layer that is being unpacked.
type place struct {
	root *os.Root
	path string // from the layer's root, without links in it; "" is that
	from string // the name by which it was found
}

// close frees the descriptor. The zero place has none.
func (p place) close() {
	if p.root != nil {
		_ = p.root.Close()
	}
}

// parent returns the directory of a name; it stays open until the next call.
func (u *unpacker) parent(name string) (at place, base string, err error) {
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	if u.last.root != nil && u.last.from == dir { // entries of one directory follow each other
		return u.last, base, nil
	}
	u.forget()
	u.last, err = u.open(dir)
	return u.last, base, err
}

// forget closes the last place.
func (u *unpacker) forget() {
	u.last.close()
	u.last = place{}
}

// An archive may lead so far; links count by what they lead through.
const (
	maxName  = 4096 // bytes: the kernel takes no more
	maxDepth = 256
	maxSteps = 1024
)

// open opens a directory, and makes what is missing of it. Links are followed as they would be with the layer as root.
func (u *unpacker) open(dir string) (_ place, err error) {
	if len(dir) > maxName {
		return place{}, drover.Errorf(drover.Invalid, "its name is longer than %d bytes", maxName)
	}
	top, err := u.root.OpenRoot(".")
	if err != nil {
		return place{}, err
	}
	way := []place{{root: top}} // all that it leads through
	back := func(to int) {
		for _, p := range way[to:] {
			p.close()
		}
		way = way[:to]
	}
	defer func() { back(0) }()
	rest := strings.Split(dir, "/")
	for steps := 0; len(rest) > 0; steps++ {
		if steps > maxSteps || len(way) > maxDepth {
			return place{}, drover.Errorf(drover.Invalid, "it leads through too many folders or links")
		}
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			back(max(len(way)-1, 1))
			continue
		}
		at := way[len(way)-1]
		next, target, err := step(at.root, name)
		if err != nil {
			return place{}, err
		}
		if next != nil {
			way = append(way, place{root: next, path: path.Join(at.path, name)})
			continue
		}
		if strings.HasPrefix(target, "/") {
			back(1)
		}
		rest = slices.Concat(strings.Split(target, "/"), rest)
	}
	found := way[len(way)-1]
	way = way[:len(way)-1]
	found.from = dir
	return found, nil
}

// step opens one directory below at, and makes it if it is missing; if a link has the name, it returns its target.
func step(at *os.Root, name string) (next *os.Root, target string, err error) {
	info, err := at.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeCharDevice != 0 { // a deletion is no obstacle
		err = makeStep(at, name, err == nil)
	} else if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, err = at.Readlink(name)
		return nil, target, err
	}
	if err == nil {
		next, err = at.OpenRoot(name)
	}
	return next, "", err
}

// makeStep makes one missing directory. If this layer had deleted the name before, the new directory must not show what
// lower layers have under it, so it is marked opaque.
func makeStep(at *os.Root, name string, deleted bool) error {
	if deleted {
		if err := at.Remove(name); err != nil {
			return err
		}
	}
	if err := at.Mkdir(name, 0o755); err != nil || !deleted {
		return err
	}
	return hideLower(at, name)
}
