package artifact

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/gitfetch"
)

// tree gets the tree of a commit out of a git repository, with its submodules, or one file of it in mode "file". What is there
// afterwards has no .git: it is no repository.
func (f *Fetcher) tree(ctx context.Context, r *Request, src *source) error {
	w, err := f.wanted(r, src)
	if err != nil {
		return err
	}
	if !w.File {
		return f.whole(ctx, r, w)
	}
	if w.Size, err = room(r.Root, f.cfg.Size); err != nil {
		return err
	}
	t, err := f.cfg.Git.Fetch(ctx, w)
	if err != nil {
		return err
	}
	return errors.Join(f.fileOf(ctx, r, src, t), t.Close())
}

// part is a repository, and where its tree belongs: below inside in the destination.
type part struct {
	want   gitfetch.Want
	inside string
}

// whole unpacks the tree and those of its submodules, one after the other, as a scratch folder is for one repository at a time. All of them
// together have the bounds of one archive. Errors: Invalid for more than gitfetch.MaxSubmodules.
func (f *Fetcher) whole(ctx context.Context, r *Request, w gitfetch.Want) error {
	u, err := f.unpacker(ctx, r, "")
	if err != nil {
		return err
	}
	todo := []part{{want: w}}
	for at := 0; at < len(todo); at++ {
		within, err := f.part(ctx, r, u, todo[at])
		if inside := todo[at].inside; err != nil && inside != "" {
			return fmt.Errorf("submodule %q: %w", inside, err)
		}
		if err != nil {
			return err
		}
		if todo = append(todo, within...); len(todo) > gitfetch.MaxSubmodules+1 {
			return drover.Errorf(drover.Invalid, "the repository and its submodules have more than %d of them", gitfetch.MaxSubmodules)
		}
	}
	return nil
}

// part unpacks one repository's tree, and returns its submodules.
func (f *Fetcher) part(ctx context.Context, r *Request, u *unpacker, p part) (within []part, err error) {
	if err := straight(r.Root, r.Path, p.inside); err != nil {
		return nil, err
	}
	if p.want.Size, err = room(r.Root, f.cfg.Size); err != nil {
		return nil, err
	}
	t, err := f.cfg.Git.Fetch(ctx, p.want)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	u.base = path.Join(r.Path, p.inside)
	if err := u.stream(t); err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, t); err != nil { // git may fail after its last file
		return nil, err
	}
	list, err := t.Submodules(ctx)
	for _, s := range list {
		next := p.want
		next.URL, next.Ref, next.Path = s.URL, s.Commit, ""
		within = append(within, part{next, path.Join(p.inside, s.Path)})
	}
	return within, err
}

// straight reports whether folders alone lead to where a submodule belongs: no link of the tree that names it. Errors: Invalid.
func straight(root *os.Root, base, inside string) error {
	for at := inside; at != "" && at != "."; at = path.Dir(at) {
		info, err := root.Lstat(path.Join(base, at))
		if err != nil {
			return fmt.Errorf("looking for the folder of the submodule: %w", err)
		}
		if !info.IsDir() {
			return drover.Errorf(drover.Invalid, "%q of the repository is no folder", at)
		}
	}
	return nil
}

// wanted reads the options.
func (f *Fetcher) wanted(r *Request, src *source) (w gitfetch.Want, err error) {
	if f.cfg.Git == nil {
		return w, drover.Errorf(drover.NotImplemented, "this node fetches nothing by git")
	}
	w = gitfetch.Want{
		URL: src.text, Ref: src.options["ref"], Path: src.subdir, File: r.Mode == "file",
		Root: r.Root, Folder: r.Scratch,
	}
	switch {
	case len(r.Headers) > 0:
		return w, drover.Errorf(drover.Invalid, "headers: git takes none; put a user and a token into the address")
	case src.options["checksum"] != "" && !w.File:
		return w, drover.Errorf(drover.Invalid, "option checksum: is of a file, and a repository has many: name the commit in ref")
	case w.File && w.Path == "":
		return w, drover.Errorf(drover.Invalid, "mode file needs a file of the repository: REPOSITORY//PATH")
	case src.options["archive"] != "" && src.options["archive"] != "false":
		return w, drover.Errorf(drover.Invalid, "option archive: a repository is none")
	}
	if n := src.options["depth"]; n != "" { // only the wanted commit is fetched, whatever is asked for
		if d, err := strconv.Atoi(n); err != nil || d < 0 {
			return w, drover.Errorf(drover.Invalid, "option depth: %q is no number of commits", n)
		}
	}
	if key := src.options["sshkey"]; key != "" {
		text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(key), ""))
		if err != nil {
			return w, drover.Errorf(drover.Invalid, "option sshkey: is no base64 of a private key")
		}
		w.Key = string(text)
	}
	return w, nil
}

// fileOf writes one file of the repository to the destination.
func (f *Fetcher) fileOf(ctx context.Context, r *Request, src *source, t *gitfetch.Tree) error {
	if src.options["mode"] == "" {
		src.options["mode"] = strconv.FormatUint(uint64(t.Mode()), 8)
	}
	return f.place(ctx, r, src, r.Path, func(context.Context) (io.ReadCloser, error) { return io.NopCloser(t), nil })
}
