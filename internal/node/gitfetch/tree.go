package gitfetch

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// waitDelay is how long git's output is read when git itself is gone: others may have it.
const waitDelay = 5 * time.Second

// Tree is the wanted tree as a tar stream, or the wanted file's content. Whoever got it closes it.
type Tree struct {
	r      *repository
	ctx    context.Context // that of the fetch, which the stream is a part of
	cancel context.CancelFunc
	git    *command
	url    string
	path   string // in the tree
	file   bool
	pipe   io.ReadCloser
	from   io.Reader // pipe, or a file in the stream of it
	mode   os.FileMode
	ended  bool
}

// open starts what writes the stream.
func (t *Tree) open(ctx context.Context, w Want) (err error) {
	inTree := path.Clean("/" + w.Path)[1:]
	t.url, t.path, t.file = w.URL, inTree, w.File
	at := []string{"--literal-pathspecs", "archive", "--format=tar", want}
	switch {
	case w.File:
		at = append(at, "--", inTree)
	case inTree != "":
		at[3] += ":" + inTree
	}
	life, cancel := context.WithCancel(ctx)
	t.ctx, t.cancel = life, cancel
	t.git = t.r.command(life, nil, "", nil, at)
	if t.pipe, err = t.git.StdoutPipe(); err != nil {
		t.cancel()
		return err
	}
	if err := t.git.Start(); err != nil {
		t.cancel()
		return fmt.Errorf("starting git: %w", err)
	}
	if t.from = t.pipe; w.File {
		err = t.seek(inTree)
	}
	if err != nil {
		t.stop()
	}
	return err
}

// seek finds the file in the stream.
func (t *Tree) seek(name string) error {
	for in := tar.NewReader(t.pipe); ; {
		h, err := in.Next()
		switch {
		case err != nil:
			if ended := t.wait(); ended != nil {
				return ended
			}
			return t.missing()
		case h.Typeflag == tar.TypeXGlobalHeader || h.Typeflag == tar.TypeDir && h.Name != name+"/":
			continue
		case h.Typeflag == tar.TypeReg && h.Name == name:
			t.from, t.mode = in, os.FileMode(h.Mode)&os.ModePerm
			return nil
		}
		return drover.Errorf(drover.Invalid, "%q of the repository is no file", name)
	}
}

// Mode is that of a wanted file.
func (t *Tree) Mode() os.FileMode { return t.mode }

// Read implements io.Reader. The stream's end comes when git has ended well.
func (t *Tree) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if ended := t.wait(); ended != nil {
		return n, ended
	}
	return n, io.EOF
}

// wait reads what is left of the stream, and awaits git.
func (t *Tree) wait() error {
	if t.ended {
		return nil
	}
	_, _ = io.Copy(io.Discard, t.pipe)
	t.ended = true
	err := t.git.failure(t.ctx, t.git.Wait())
	if err == nil || t.ctx.Err() != nil || t.path == "" {
		return err
	}
	for _, part := range []string{"not a valid object name", "not a tree object", "did not match"} {
		if strings.Contains(err.Error(), part) {
			return t.missing()
		}
	}
	return err
}

func (t *Tree) missing() error {
	kind := "folder"
	if t.file {
		kind = "file"
	}
	return drover.Errorf(drover.Invalid, "the repository has no %s %q", kind, t.path)
}

// stop ends git.
func (t *Tree) stop() {
	t.cancel()
	if !t.ended {
		t.ended = true
		_ = t.git.Wait() // it was killed
	}
}

func (t *Tree) remove() error {
	if err := t.r.root.RemoveAll(t.r.rel); err != nil {
		return fmt.Errorf("removing the repository: %w", err)
	}
	return nil
}

// Close ends what still runs, and removes the repository.
func (t *Tree) Close() error {
	t.stop()
	return t.remove()
}
