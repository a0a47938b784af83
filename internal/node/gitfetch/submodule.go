package gitfetch

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-project/drover"
)

// Submodule is a part of a tree that another repository has.
type Submodule struct {
	Path   string // in the wanted tree
	URL    string
	Commit string
}

// Bounds of what a repository says of its submodules.
const (
	MaxSubmodules = 100      // of one tree
	maxModules    = 1 << 20  // bytes of .gitmodules, as git tells of it
	maxRecord     = 64 << 10 // bytes of a name or a value
)

// Submodules are those of the wanted tree, by their paths, with the addresses that .gitmodules has for them. Those that it says never
// to update are left out, as git leaves them. Errors: Invalid for more than MaxSubmodules, one without an address, and an address that
// leads nowhere.
func (t *Tree) Submodules(ctx context.Context) ([]Submodule, error) {
	if t.file {
		return nil, nil
	}
	modules := false
	err := t.r.records(ctx, maxModules, func(string) error { modules = true; return nil }, "ls-tree", "-z", want, ".gitmodules")
	if err != nil || !modules {
		return nil, err
	}
	links, err := t.links(ctx)
	if err != nil || len(links) == 0 {
		return nil, err
	}
	said := map[string]map[string]string{} // by the submodule's name
	err = t.r.records(ctx, maxModules, func(record string) error {
		key, value, _ := strings.Cut(record, "\n")
		rest, ours := strings.CutPrefix(key, "submodule.")
		if dot := strings.LastIndexByte(rest, '.'); ours && dot > 0 {
			name, key := rest[:dot], rest[dot+1:]
			if said[name] == nil {
				said[name] = map[string]string{}
			}
			said[name][key] = value
		}
		return nil
	}, "config", "--blob="+want+":.gitmodules", "--null", "--list")
	if err != nil {
		return nil, err
	}
	return t.named(links, said)
}

// links are the wanted tree's entries that are commits of other repositories, with their paths in the repository.
func (t *Tree) links(ctx context.Context) (links []Submodule, err error) {
	args := []string{"--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", want}
	if t.path != "" {
		args = append(args, "--", t.path+"/")
	}
	err = t.r.records(ctx, 0, func(record string) error {
		about, name, _ := strings.Cut(record, "\t")
		commit, is := strings.CutPrefix(about, "160000 commit ")
		if !is {
			return nil
		}
		if len(links) == MaxSubmodules {
			return drover.Errorf(drover.Invalid, "the repository has more than %d submodules", MaxSubmodules)
		}
		links = append(links, Submodule{Path: name, Commit: commit})
		return nil
	}, args...)
	return links, err
}

// named gives the links the addresses that .gitmodules has for their paths.
func (t *Tree) named(links []Submodule, said map[string]map[string]string) (out []Submodule, err error) {
	for _, l := range links {
		about := map[string]string{}
		for _, one := range said {
			if path.Clean(one["path"]) == l.Path {
				about = one
			}
		}
		if about["update"] == "none" {
			continue
		}
		if about["url"] == "" {
			return nil, drover.Errorf(drover.Invalid, "submodule %q: .gitmodules has no address for it", l.Path)
		}
		if l.URL, err = relative(t.url, about["url"]); err != nil {
			return nil, fmt.Errorf("submodule %q: %w", l.Path, err)
		}
		inside := l.Path
		if t.path != "" {
			inside = strings.TrimPrefix(l.Path, t.path+"/")
		}
		if !filepath.IsLocal(inside) {
			return nil, drover.Errorf(drover.Invalid, "submodule %q: leads out of the repository", l.Path)
		}
		l.Path = inside
		out = append(out, l)
	}
	return out, nil
}

// relative resolves an address that begins with ./ or ../ as git does: below the address of the repository that names it. What that has
// of a user and a token goes along, as it is the same server. Errors: Invalid for one that leads above the server's root.
func relative(parent, address string) (string, error) {
	if !strings.HasPrefix(address, "./") && !strings.HasPrefix(address, "../") {
		return address, nil
	}
	parent, floor, separator := strings.TrimRight(parent, "/"), 0, "/"
	if at := strings.Index(parent, "://"); at >= 0 {
		floor = at + len("://")
	}
	for rest := address; ; {
		switch {
		case strings.HasPrefix(rest, "./"):
			rest = rest[len("./"):]
		case strings.HasPrefix(rest, "../"):
			rest = rest[len("../"):]
			at := strings.LastIndexAny(parent, "/:")
			if at <= floor || floor > 0 && parent[at] == ':' {
				return "", drover.Errorf(drover.Invalid, "address %q leads above the server of %q", address, hidden(parent))
			}
			parent, separator = parent[:at], parent[at:at+1]
		default:
			return strings.TrimRight(parent+separator+rest, "/"), nil
		}
	}
}

// hidden is an address without who asks.
func hidden(address string) string {
	without, _ := withoutLogin(address)
	return without
}

// records runs git without a network, and calls each with what it writes between zero bytes. Most bounds that in bytes, 0 not at all.
// Errors: Invalid for more than that, that of each, and git's.
func (r *repository) records(ctx context.Context, most int64, each func(record string) error, args ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := r.command(ctx, nil, "", nil, args)
	pipe, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting git: %w", err)
	}
	in := bufio.NewScanner(pipe)
	in.Buffer(nil, maxRecord)
	in.Split(func(data []byte, end bool) (int, []byte, error) {
		if at := bytes.IndexByte(data, 0); at >= 0 {
			return at + 1, data[:at], nil
		}
		if end && len(data) > 0 {
			return 0, nil, io.ErrUnexpectedEOF
		}
		return 0, nil, nil
	})
	read := int64(0)
	for err == nil && in.Scan() {
		if read += int64(len(in.Bytes())) + 1; most > 0 && read > most {
			err = drover.Errorf(drover.Invalid, "the repository's .gitmodules has more than %d bytes", most)
			break
		}
		err = each(in.Text())
	}
	if err == nil && in.Err() != nil && slices.Contains([]error{bufio.ErrTooLong, io.ErrUnexpectedEOF}, in.Err()) {
		err = drover.Errorf(drover.Invalid, "reading what git says of the repository: %w", in.Err())
	}
	if err != nil {
		cancel()
		_ = c.Wait() // it was killed
		return err
	}
	return c.failure(ctx, c.Wait())
}
