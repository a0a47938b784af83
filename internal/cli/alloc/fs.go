package alloc

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// fsFlags are the flags of "drover alloc fs". human writes sizes with units; stat describes the path itself.
type fsFlags struct {
	term.Output
	chosen
	tail
	human, stat bool
}

// fsCommand is "drover alloc fs": "ls", "stat" and "cat" in one, as Nomad has it. What the path is decides what is
// printed.
func fsCommand(app *term.App) *cobra.Command {
	f := &fsFlags{}
	run := func(ctx context.Context, app *term.App, args []string) error {
		return fs(ctx, app, f, args)
	}
	c := term.Command(app, "fs ALLOC [PATH]", "List a folder of an allocation, or print a file", 0, 2, run)
	term.Describe(c, "Paths begin at the allocation's folder: alloc/ is what its tasks share, alloc/logs/ what they wrote, TASK/local/ a "+
		"task's own.",
		`drover alloc fs 3f2a
drover alloc fs 3f2a alloc/logs/
drover alloc fs 3f2a alloc/data/result.txt
drover alloc fs -stat 3f2a web/local
drover alloc fs -tail -n 5 -f 3f2a alloc/data/events.log`)
	fl := c.Flags()
	f.Bind(fl)
	f.bindJob(fl)
	f.tail.bind(fl, "go on as the file grows")
	fl.BoolVar(&f.stat, "stat", false, "show what the path is instead of its contents")
	fl.BoolVarP(&f.human, "human", "H", false, "sizes in KiB, MiB, …")
	return c
}

// fs looks at the path first, and then lists the folder or prints the file. The path "/" is the allocation's folder,
// and nothing above it can be reached. Errors: Invalid, NotFound; the API's.
func fs(ctx context.Context, app *term.App, f *fsFlags, args []string) error {
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	v, args, err := f.allocation(ctx, c, args)
	if err != nil {
		return err
	}
	path := "/"
	if len(args) > 0 {
		path = args[0]
	}
	q := url.Values{"path": {path}}
	var info drover.AllocFileInfo
	if _, err := c.Get(ctx, "/v1/client/fs/stat/"+v.ID, q, &info); err != nil {
		return err
	}
	switch {
	case f.stat:
		if done, err := f.Data(app.Out, info); done {
			return err
		}
		return f.files(app.Out, []drover.AllocFileInfo{info})
	case info.IsDir:
		return ls(ctx, app, c, f, v.ID, q)
	}
	return f.cat(ctx, c, app.Out, v.ID, q, info.Size)
}

// ls lists a folder, without what is in the folders below it.
func ls(ctx context.Context, app *term.App, c *api.Client, f *fsFlags, id string, q url.Values) error {
	var list []drover.AllocFileInfo
	if _, err := c.Get(ctx, "/v1/client/fs/ls/"+id, q, &list); err != nil {
		return err
	}
	if done, err := f.Data(app.Out, list); done {
		return err
	}
	return f.files(app.Out, list)
}

// files prints a row for each file; a folder has a slash behind its name.
func (f *fsFlags) files(w io.Writer, list []drover.AllocFileInfo) error {
	var rows [][]string
	for _, i := range list {
		name, size := i.Name, strconv.FormatInt(i.Size, 10)
		if i.IsDir {
			name += "/"
		}
		if f.human {
			size = term.Bytes(float64(i.Size))
		}
		rows = append(rows, []string{i.FileMode, size, i.ModTime, name})
	}
	return term.Table(w, "The folder is empty.", "Mode|Size|Modified|Name", rows)
}

// cat prints a file, whose size in bytes is that of the stat before: a file that grew meanwhile is printed as it is
// now. Following and ends need the streaming route. Errors: the API's; those of writing.
func (f *fsFlags) cat(ctx context.Context, c *api.Client, w io.Writer, id string, q url.Values, size int64) error {
	if f.wantsEnd() || f.follow {
		return f.print(ctx, c, w, "/v1/client/fs/stream/"+id, q, size)
	}
	if err := c.CopyTo(ctx, w, "/v1/client/fs/cat/"+id, q); err != nil {
		return fmt.Errorf("printing the file: %w", err)
	}
	return nil
}
