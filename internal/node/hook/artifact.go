package hook

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/forked"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// artifacts fetches a task's files from file:// and http(s) addresses.
type artifacts struct{ settings Settings }

func (artifacts) Name() string { return "artifacts" }

// Once is true: the files stay in the task's folder over a restart, and a download again could change a running job.
func (artifacts) Once() bool { return true }

// Prestart fetches the task's artifacts in the order of the job. The first error ends it with a Failure of type "Failed
// Artifact Download", as in Nomad. Errors that a second try cannot mend, such as a wrong checksum, are not recoverable.
func (h artifacts) Prestart(ctx context.Context, r *Request) error {
	if len(r.Task.Artifacts) == 0 {
		return nil
	}
	r.Emit(taskmachine.NewEvent(drover.TaskDownloading, "Client is downloading artifacts"))
	for _, a := range r.Task.Artifacts {
		if err := h.fetch(ctx, r, a); err != nil {
			code := drover.CodeOf(err)
			return &Failure{
				Type: drover.TaskDownloadFailed, Err: fmt.Errorf("failed to download artifact %q: %w", a.GetterSource, err),
				Recoverable: code != drover.Invalid && code != drover.Forbidden && code != drover.NotImplemented && code != drover.TooLarge,
			}
		}
	}
	return nil
}

// fetch gets one artifact: an archive into a temporary file, which is unpacked, and any other file right to its place.
func (h artifacts) fetch(ctx context.Context, r *Request, a *drover.TaskArtifact) error {
	source, options, err := parseSource(r, a)
	if err != nil {
		return err
	}
	dest := a.RelativeDest
	if dest == "" {
		dest = "local/"
	}
	root, rel, err := r.place(dest)
	if err != nil {
		return err
	}
	defer root.Close()
	// Mode "any", which is also the default, unpacks what is an archive by its name and keeps the rest as a file.
	kind := archiveKind(source.Path, options["archive"])
	switch {
	case a.GetterMode == "file":
		return h.place(ctx, r, a, root, rel, source, options)
	case kind != "":
		return h.unpack(ctx, r, a, root, rel, source, options["checksum"], kind)
	case a.GetterMode == "dir":
		return drover.Errorf(drover.Invalid, "mode dir needs an archive")
	}
	name := options["filename"]
	if name == "" {
		name = path.Base(source.Path)
	}
	if name == "/" || name == "." || name == ".." || strings.ContainsRune(name, '/') {
		return drover.Errorf(drover.Invalid, "the source has no file name")
	}
	return h.place(ctx, r, a, root, filepath.Join(rel, name), source, options)
}

// place downloads to the file, which is not there if that fails. An existing one is replaced, not written into: it could be a link, or
// have more hard links.
func (h artifacts) place(
	ctx context.Context, r *Request, a *drover.TaskArtifact, root *os.Root, rel string, u *url.URL, options map[string]string,
) error {
	perm := os.FileMode(0o644)
	if options["mode"] != "" {
		parsed, err := parsePerms(options["mode"])
		if err != nil {
			return err
		}
		perm = parsed
	}
	if err := makeParents(root, rel); err != nil {
		return err
	}
	_ = root.Remove(rel)
	f, err := root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	err = h.download(ctx, r, a, root, u, options["checksum"], f)
	if closeErr := forked.Close(f); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = root.Remove(rel)
	}
	return err
}

// unpack downloads an archive to an unlinked temporary file in the allocation's folder, and unpacks that.
func (h artifacts) unpack(
	ctx context.Context, r *Request, a *drover.TaskArtifact, root *os.Root, rel string, u *url.URL, checksum, kind string,
) error {
	temp, err := os.CreateTemp(root.Name(), ".artifact-")
	if err != nil {
		return fmt.Errorf("making a temporary file: %w", err)
	}
	defer func() { _ = temp.Close() }()
	_ = os.Remove(temp.Name())
	if err := h.download(ctx, r, a, root, u, checksum, temp); err != nil {
		return err
	}
	if _, err := temp.Seek(0, io.SeekStart); err != nil {
		return err
	}
	room, err := room(root, h.settings.ArtifactUnpacked)
	if err != nil {
		return err
	}
	return unpack(ctx, root, temp, rel, kind, room, h.settings.ArtifactFiles)
}

// parseSource interpolates the address and collects the options, those of the query too.
func parseSource(r *Request, a *drover.TaskArtifact) (*url.URL, map[string]string, error) {
	raw := r.Env.Replace(a.GetterSource)
	if forced, rest, ok := strings.Cut(raw, "::"); ok {
		if forced != "http" && forced != "https" && forced != "file" {
			return nil, nil, drover.Errorf(drover.NotImplemented, "getter %q is not there, only http, https and file", forced)
		}
		raw = rest
	}
	if filepath.IsAbs(raw) {
		raw = "file://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, nil, drover.Errorf(drover.Invalid, "source: %w", err)
	}
	switch u.Scheme {
	case "http", "https", "file":
	case "":
		return nil, nil, drover.Errorf(drover.Invalid, "source %q: needs http://, https:// or file://", raw)
	default:
		return nil, nil, drover.Errorf(drover.NotImplemented, "source scheme %q is not there, only http, https and file", u.Scheme)
	}
	options := map[string]string{}
	query := u.Query()
	for _, k := range []string{"checksum", "archive", "filename"} {
		if v := query.Get(k); v != "" {
			options[k] = v
			query.Del(k)
		}
	}
	u.RawQuery = query.Encode()
	for k, v := range a.GetterOptions {
		options[k] = r.Env.Replace(v)
	}
	return u, options, nil
}

// piece is how much of an artifact is read and written at once, at most.
const piece = 256 << 10

// download writes the artifact to the file, and compares its checksum.
func (h artifacts) download(
	ctx context.Context, r *Request, a *drover.TaskArtifact, root *os.Root, u *url.URL, checksum string, to *os.File,
) error {
	sum, want, err := parseChecksum(checksum)
	if err != nil {
		return err
	}
	body, err := h.open(ctx, r, a, u)
	if err != nil {
		return err
	}
	defer body.Close()
	room, err := room(root, h.settings.ArtifactSize)
	if err != nil {
		return err
	}
	out := io.MultiWriter(to) // which hides that the file would read by itself, in small pieces
	if want != "" {
		out = io.MultiWriter(to, sum)
	}
	n, err := io.CopyBuffer(out, io.LimitReader(body, room+1), make([]byte, piece))
	switch {
	case err != nil:
		return err
	case n > room:
		return drover.Errorf(drover.TooLarge, "it has more than %d bytes, which are what the node takes (client.artifact.http_max_size), "+
			"or what its disk has", room)
	case want != "" && hex.EncodeToString(sum.Sum(nil)) != want:
		return drover.Errorf(drover.Invalid, "checksum is %x, not %s", sum.Sum(nil), want)
	}
	return nil
}

// room is how many bytes an artifact may take: the bound, and no more than leaves the disk, on which others live too,
// something free. Errors: Exhausted.
func room(root *os.Root, bound int64) (int64, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(root.Name(), &disk); err != nil {
		return 0, fmt.Errorf("asking for the disk's free space: %w", err)
	}
	block := int64(disk.Bsize)
	free := (int64(disk.Bavail) - min(int64(disk.Blocks)/20, (1<<30)/block)) * block // disks are smaller
	if free <= 0 {
		return 0, drover.Errorf(drover.Exhausted, "the node's disk is nearly full")
	}
	return min(free, bound), nil
}

// open returns the artifact's content. Redirects and forbidden addresses are the HTTP client's matter (package
// netguard). Any answer but 200 is an error that may be tried again.
func (h artifacts) open(ctx context.Context, r *Request, a *drover.TaskArtifact, u *url.URL) (io.ReadCloser, error) {
	if u.Scheme == "file" {
		return openLocal(r, u.Path)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "source: %w", err)
	}
	for k, v := range a.GetterHeaders {
		req.Header.Set(k, r.Env.Replace(v))
	}
	res, err := h.settings.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return nil, fmt.Errorf("the server answered %s", res.Status)
	}
	return res.Body, nil
}

// openLocal opens a file of the node. The agent may read what a sandbox never may: so only where jobs can read all that
// themselves, as raw_exec's tasks can.
func openLocal(r *Request, path string) (io.ReadCloser, error) {
	if d := r.Node.Drivers["raw_exec"]; d == nil || !d.Healthy {
		return nil, drover.Errorf(drover.Invalid, "%s: files of the node are for jobs only where raw_exec is enabled (plugin \"raw_exec\")", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0) // a fifo must not hold us
	if errors.Is(err, os.ErrNotExist) {
		return nil, drover.Errorf(drover.Invalid, "%s: no such file", path)
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, drover.Errorf(drover.Invalid, "%s: is not a regular file", path)
	}
	return f, nil
}

// parseChecksum reads "kind:hex", or hex alone, whose length tells the kind. It returns the hash to compute and the
// wanted sum in lower-case hex; "" is none. Errors: Invalid.
func parseChecksum(s string) (hash.Hash, string, error) {
	if s == "" {
		return nil, "", nil
	}
	kind, value, ok := strings.Cut(s, ":")
	if !ok {
		kind, value = map[int]string{32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}[len(s)], s
	}
	value = strings.ToLower(value)
	switch kind {
	case "md5":
		return md5.New(), value, nil
	case "sha1":
		return sha1.New(), value, nil
	case "sha256":
		return sha256.New(), value, nil
	case "sha512":
		return sha512.New(), value, nil
	}
	return nil, "", drover.Errorf(drover.Invalid, "checksum %q: must be md5, sha1, sha256 or sha512 with a colon and hex", s)
}
