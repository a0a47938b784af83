package ops

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/rotation"
)

// Archives reads what servers and nodes keep on this machine, without an agent.
type Archives struct {
	// Inspect verifies an archive and says what it has.
	Inspect func(r io.Reader) (cluster.ArchiveContent, error)
	// State verifies an archive and writes what it has as JSON, without secrets.
	State func(ctx context.Context, r io.Reader, w io.Writer) error
	// Node writes what a node's file remembers of its allocations as JSON; nil where no node runs.
	Node func(path string, w io.Writer) error
}

const snapshotPath = "/v1/operator/snapshot"

// snapshotCommand is "drover operator snapshot".
func snapshotCommand(app *term.App, archives Archives) *cobra.Command {
	return term.Group("snapshot", "Save the state of the servers, and restore it",
		saveCommand(app), restoreCommand(app), inspectCommand(app, archives), stateCommand(app, archives))
}

// saveFlags are the flags of "drover operator snapshot save".
type saveFlags struct {
	stale    bool
	encrypt  bool
	interval time.Duration
	keep     int
	folder   string
}

func saveCommand(app *term.App) *cobra.Command {
	var f saveFlags
	run := func(ctx context.Context, c *api.Client, args []string) error {
		switch {
		case f.interval < 0 || f.keep < 1:
			return drover.Errorf(drover.Invalid, "-interval must be positive, and -keep at least 1")
		case f.interval > 0 && len(args) > 0:
			return drover.Errorf(drover.Invalid, "-interval makes its own names: give -folder instead of FILE")
		case f.interval > 0:
			return f.repeat(ctx, app, c)
		}
		name := "drover-" + stamp(app.Clock) + ".snap"
		if len(args) > 0 {
			name = args[0]
		}
		return f.once(ctx, app, c, name)
	}
	c := term.NomadCommand(app, "save [FILE]", "Save the state to a file", 0, 1, run)
	term.Describe(c, `Saves the state of the servers to a file, which is there whole or not at all: jobs, nodes, allocations, evaluations,
pools and machines. What tasks have on disk is not in it. The file has secrets (of nodes, of the fleet, and what jobs have in them): only
you can read it.

With -encrypt the servers encrypt it with the key-encryption key of their keyring, and only servers that have that can restore it: keep a
copy of the key apart from the file. They encrypt all files with server.snapshots.encrypt.

With -interval it saves again and again, and keeps the newest files. A server does the same by itself: server.snapshots in its
configuration.`, `
drover operator snapshot save backup.snap
drover operator snapshot save -interval 1h -keep 24 -folder /var/backups/drover`)
	fl := c.Flags()
	fl.BoolVar(&f.stale, "stale", false, "let any server answer, not only the leader: the state may be some moments old")
	fl.BoolVar(&f.encrypt, "encrypt", false, "encrypt it: only servers that have the keyring's key-encryption key can restore it")
	fl.DurationVar(&f.interval, "interval", 0, "save again after that time, until you stop it")
	fl.IntVar(&f.keep, "keep", 7, "files that stay, with -interval")
	fl.StringVar(&f.folder, "folder", ".", "where they are, with -interval")
	return c
}

// stamp is the present time as names of files have it.
func stamp(c clock.Clock) string { return c.Now().UTC().Format("20060102T150405Z") }

// once saves to a file that is not there yet.
func (f *saveFlags) once(ctx context.Context, app *term.App, c *api.Client, name string) error {
	if _, err := os.Lstat(name); err == nil {
		return drover.Errorf(drover.Conflict, "%s is there already", name)
	}
	var got received
	if err := rotation.Write(name, func(w io.Writer) (err error) { got, err = f.download(ctx, c, w); return err }); err != nil {
		return fileError(name, err)
	}
	return got.tell(app, name)
}

// repeat saves until ctx ends, which is no error. A save that fails is told, and tried again at the next time.
func (f *saveFlags) repeat(ctx context.Context, app *term.App, c *api.Client) error {
	series := rotation.Series{Folder: f.folder, Prefix: "drover-", Suffix: ".snap", Keep: f.keep}
	for {
		var got received
		path, err := series.Add(stamp(app.Clock), func(w io.Writer) (err error) { got, err = f.download(ctx, c, w); return err })
		if err == nil {
			err = got.tell(app, path)
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(app.Err, "Not saved:", err)
		}
		if !clock.Sleep(ctx, app.Clock, f.interval) {
			return nil
		}
	}
}

// received is what came of an archive.
type received struct {
	index uint64
	size  int64
}

func (r received) tell(app *term.App, name string) error {
	_, err := fmt.Fprintf(app.Out, "Saved the state of index %d to %s (%s).\n", r.index, name, term.Bytes(float64(r.size)))
	return err
}

// download writes an archive, and checks that all of it came. Errors: the API's; Unavailable if it came torn.
func (f *saveFlags) download(ctx context.Context, c *api.Client, w io.Writer) (r received, err error) {
	q := url.Values{}
	if f.stale {
		q.Set("stale", "")
	}
	if f.encrypt {
		q.Set("encrypt", "true")
	}
	res, err := c.Open(ctx, http.MethodGet, snapshotPath, q, nil)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()
	if f.encrypt && res.Header.Get("X-Drover-Encrypted") != "true" {
		return r, drover.Errorf(drover.Unavailable, "the server does not encrypt: it is of an older version")
	}
	sum := sha256.New()
	if r.size, err = io.Copy(io.MultiWriter(w, sum), res.Body); err != nil {
		return r, fmt.Errorf("receiving the archive: %w", err)
	}
	if said := res.Header.Get("Digest"); said != digest(sum.Sum(nil)) {
		return r, drover.Errorf(drover.Unavailable, "the archive was damaged on its way: its sum is not the one that the agent said (%s)", said)
	}
	r.index, _ = strconv.ParseUint(res.Header.Get("X-Nomad-Index"), 10, 64) // for people
	return r, nil
}

// digest is a sum as the header Digest has it.
func digest(sum []byte) string { return "sha-256=" + base64.StdEncoding.EncodeToString(sum) }

// fileError names the file.
func fileError(name string, err error) error {
	var p *os.PathError
	if errors.As(err, &p) && drover.CodeOf(err) == drover.Internal {
		return drover.Errorf(drover.Invalid, "%s: %w", name, p.Err)
	}
	return err
}

// opened calls a function with an open file.
func opened(name string, then func(*os.File) error) error {
	file, err := os.Open(name)
	if err != nil {
		return fileError(name, err)
	}
	defer file.Close()
	return then(file)
}

func restoreCommand(app *term.App) *cobra.Command {
	c := term.NomadCommand(app, "restore FILE", "Replace the state by that of a file", 1, 1,
		func(ctx context.Context, c *api.Client, args []string) error {
			return opened(args[0], func(file *os.File) error { return restore(ctx, app, c, file) })
		})
	term.Describe(c, `Replaces the state of all servers by that of a file. Nothing is changed if the file is not whole. What happened since it
was saved is forgotten: what runs and is not in it is ended, and warm runners are made anew, as they may have been handed out.`,
		`drover operator snapshot restore backup.snap`)
	return c
}

// restore sends the file with its sum.
func restore(ctx context.Context, app *term.App, c *api.Client, file *os.File) error {
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := http.Header{"Digest": {digest(sum.Sum(nil))}, "Content-Type": {"application/x-gzip"}}
	res, err := c.Upload(ctx, http.MethodPut, snapshotPath, nil, file, size, h)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = fmt.Fprintf(app.Out, "The state is restored, as index %s.\n", res.Header.Get("X-Nomad-Index"))
	return err
}

func inspectCommand(app *term.App, archives Archives) *cobra.Command {
	o := &term.Output{}
	run := func(_ context.Context, app *term.App, args []string) error {
		return opened(args[0], func(file *os.File) error {
			a, err := archives.Inspect(file)
			if err != nil {
				return err
			}
			if done, err := o.Data(app.Out, a); done {
				return err
			}
			err = term.Facts(app.Out, "ID", a.ID, "Index", fmt.Sprint(a.Index), "Term", fmt.Sprint(a.Term), "Saved", term.Stamp(a.Created),
				"Region", a.Region, "Cluster", a.Cluster, "Epoch", a.Epoch, "Program", a.Program, "Format", fmt.Sprint(a.Version),
				"Size", term.Bytes(float64(a.Size)), "Encrypted", a.KeyNames())
			if err != nil || len(a.Key) > 0 {
				return err
			}
			term.Section(app.Out, "Content")
			var rows [][]string
			for _, t := range a.Tables {
				rows = append(rows, []string{t.Name, fmt.Sprint(t.Records), term.Bytes(float64(t.Bytes))})
			}
			return term.Table(app.Out, "There is none.", "Table|Records|Size", rows)
		})
	}
	c := term.Command(app, "inspect FILE", "Verify a file and say what it has", 1, 1, run)
	term.Describe(c, `Verifies all sums of a file and says what it has; of one that is encrypted, which key opens it. It asks no
agent.`, "drover operator snapshot inspect backup.snap")
	o.Bind(c.Flags())
	return c
}

func stateCommand(app *term.App, archives Archives) *cobra.Command {
	c := term.Command(app, "state FILE", "Print the state in a file as JSON, without secrets", 1, 1,
		func(ctx context.Context, app *term.App, args []string) error {
			return opened(args[0], func(file *os.File) error { return archives.State(ctx, file, app.Out) })
		})
	term.Describe(c, `Prints the state in a file as JSON, a row a line. Secrets are left out, and what jobs may have secrets in: environments,
templates and payloads. It asks no agent.`, "drover operator snapshot state backup.snap")
	return c
}
