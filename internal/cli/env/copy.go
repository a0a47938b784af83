package env

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/term"
)

// runnerCopyCommand is "drover runner cp", whose words are like those of scp and docker cp.
func runnerCopyCommand(app *term.App) *cobra.Command {
	var folder, privileged bool
	run := func(ctx context.Context, c *client.Client, args []string) error {
		return copyFiles(ctx, app, c, args[0], args[1], folder, privileged)
	}
	c := term.NativeCommand(app, "cp FROM TO", "Copy files into a claimed runner, or out of it", 2, 2, run)
	term.Describe(c, `
One of FROM and TO is RUNNER:PATH, the other a path here; - is stdin or stdout (with -r a tar). A path that ends with /
is a folder to copy into; a file here whose name has a colon is ./a:b.`,
		`drover runner cp main.py python-3f2a:
drover runner cp src/ python-3f2a:/tmp/src
drover runner cp python-3f2a:result.csv .
drover runner cp -r python-3f2a:/tmp/out ./out`)
	c.Flags().BoolVarP(&folder, "recursive", "r", false, "copy a folder out of the runner")
	c.Flags().BoolVar(&privileged, "privileged", false, "read as the runner's root")
	return c
}

// copyFiles copies in the direction that the two words say: exactly one of them names a runner. folder (-r) counts
// for downloads only, since an upload sees by itself what its source is. Errors: Invalid, NotFound, Gone; those of
// files here.
func copyFiles(ctx context.Context, app *term.App, c *client.Client, from, to string, folder, privileged bool) error {
	fromRunner, fromPath, out := cutRunner(from)
	toRunner, toPath, in := cutRunner(to)
	if out == in {
		return drover.Errorf(drover.Invalid, "one of FROM and TO is RUNNER:PATH, the other a path here")
	}
	if in {
		id, err := runnerID(ctx, c, toRunner)
		if err != nil {
			return err
		}
		// A tar from stdin is not unpacked: stdin is always the content of one file.
		if from == "-" {
			if toPath == "" || strings.HasSuffix(toPath, "/") {
				return drover.Errorf(drover.Invalid, "TO: name the file, as in %s:%sNAME: stdin has no name", toRunner, toPath)
			}
			return c.WriteFile(ctx, id, execution.FileChange{Path: toPath, Write: true, Mode: 0o644}, app.In)
		}
		return upload(ctx, c, id, from, inFolder(toPath, from))
	}
	id, err := runnerID(ctx, c, fromRunner)
	if err != nil {
		return err
	}
	r := execution.FileRequest{Path: fromPath, Privileged: privileged}
	if folder {
		// The empty path is not the home here: "." is the runner's working directory.
		if r.Path == "" {
			r.Path = "."
		}
		return downloadFolder(ctx, app, c, id, r, to)
	}
	return download(ctx, app, c, id, r, to)
}

// cutRunner splits RUNNER:PATH; remote is false for a path here, which is returned as it is. A colon behind a slash
// belongs to a path here: such a file is copied as ./a:b.
func cutRunner(arg string) (runner, path string, remote bool) {
	runner, path, remote = strings.Cut(arg, ":")
	if !remote || strings.Contains(runner, "/") {
		return "", arg, false
	}
	return runner, path, true
}

// download copies one file out of a runner. It writes to a temporary file beside the target and renames it at the
// end. So a file that could not be read whole is not left behind, and an older one stays until then.
func download(ctx context.Context, app *term.App, c *client.Client, runner string, r execution.FileRequest, to string) error {
	body, err := c.ReadFile(ctx, runner, r)
	if drover.CodeOf(err) == drover.Invalid {
		return fmt.Errorf("copying %q (a folder is copied with -r): %w", r.Path, err)
	}
	if err != nil {
		return err
	}
	defer body.Close()
	if to == "-" {
		_, err := io.Copy(app.Out, body)
		return err
	}
	// A folder that exists is a folder to copy into, also without a slash behind it.
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		to = strings.TrimSuffix(to, "/") + "/"
	}
	to = inFolder(to, r.Path)
	temporary, err := os.CreateTemp(filepath.Dir(to), ".drover-cp-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(temporary, body)
	err = errors.Join(err, temporary.Chmod(0o644), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), to)
	}
	if err != nil {
		_ = os.Remove(temporary.Name()) // the first error says it
		return fmt.Errorf("copying to %s: %w", to, err)
	}
	return nil
}

// uploadFolder copies a folder's contents as tar, which is streamed and never held whole. Links are copied as links;
// devices and sockets are left out.
func uploadFolder(ctx context.Context, c *client.Client, runner, from, to string) error {
	r, w := io.Pipe()
	go func() { w.CloseWithError(packFolder(w, from)) }() // ends with the folder, or when r is closed
	defer r.Close()                                       //nolint:errcheck // a pipe
	if err := c.Extract(ctx, runner, execution.FileRequest{Path: to}, r); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}

// packFolder writes all below from as tar, without from itself: the folder was made in the runner before. Errors:
// those of the files, such as one without permission, which ends the copy.
func packFolder(w io.Writer, from string) error {
	t := tar.NewWriter(w)
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == from {
			return err
		}
		// A pipe would block the copy, and a device or socket means nothing in another machine.
		if kind := d.Type(); !kind.IsRegular() && !kind.IsDir() && kind != fs.ModeSymlink {
			return nil
		}
		return packFile(t, from, path, d)
	})
	if err != nil {
		return err
	}
	return t.Close()
}

// packFile writes one entry, with its name relative to from. d is what the walk saw; a link is not followed.
func packFile(t *tar.Writer, from, path string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	if h.Name, err = filepath.Rel(from, path); err != nil {
		return err
	}
	// The runner's user knows none of our users: what arrives is owned by whoever unpacks it there. All may read it, and
	// run it if its owner here may.
	h.Uid, h.Gid, h.Uname, h.Gname = 0, 0, "", ""
	h.Mode |= 0o444
	if h.Mode&0o100 != 0 {
		h.Mode |= 0o111
	}
	if err := t.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(t, file)
	return err
}

// downloadFolder unpacks a folder of a runner into to, which is made if it is missing; "-" prints it as tar instead.
// What the runner sends is not trusted: os.Root keeps names and links inside of the folder.
func downloadFolder(ctx context.Context, app *term.App, c *client.Client, runner string, r execution.FileRequest, to string) error {
	body, err := c.Archive(ctx, runner, r)
	if err != nil {
		return err
	}
	defer body.Close()
	if to == "-" {
		_, err := io.Copy(app.Out, body)
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close() // a folder's handle
	for t := tar.NewReader(body); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = unpack(root, h, t)
		}
		if err != nil {
			return fmt.Errorf("copying to %s: %w", to, err)
		}
	}
}

// unpack makes one entry of a runner's tar below root. Existing files and links are replaced. Owners, setuid bits and
// rights of others to write are dropped, since a guest chose them. Errors: those of the files; a name that leads
// outside.
func unpack(root *os.Root, h *tar.Header, data io.Reader) error {
	// Tools write absolute names and "./" for the folder itself: both are meant below root.
	name := filepath.Clean(strings.TrimPrefix(h.Name, "/"))
	if name == "." {
		return nil
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		_ = root.Remove(name) // a copy replaces what was there
		// The target may lead outside, as any link may: root refuses to follow it there.
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fs.FileMode(h.Mode)&0o755|0o600) // masked
		if err != nil {
			return err
		}
		_, err = io.Copy(f, data)
		return errors.Join(err, f.Close(), root.Chtimes(name, h.ModTime, h.ModTime))
	}
	return nil // devices and the like stay there
}
