package artifact

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
	"math"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/forked"
	"github.com/drover-project/drover/internal/node/gitfetch"
)

// Config of a Fetcher.
type Config struct {
	HTTP *http.Client  // reaches what may be reached, and follows redirects
	Git  *gitfetch.Git // nil: repositories are refused
	// Size and Unpacked bound an artifact as it comes and what it unpacks to, in bytes; Files what an archive, a folder
	// or a repository has.
	Size, Unpacked int64
	Files          int
	Timeouts       Timeouts
	Cloud          Cloud // who the node is, for buckets
	Clock          clock.Clock
}

// Timeouts are how long one artifact may take, by the kind of its source; 0 is no bound.
type Timeouts struct{ HTTP, Git, S3, GCS time.Duration }

// Request is one artifact.
type Request struct {
	Source           string
	Options, Headers map[string]string
	Mode             string // any, file or dir
	Root             *os.Root
	Path             string // the destination, in Root
	Local            bool   // the job may read the node's files
	// Scratch is a folder of Root for what only the fetch may see. It is made if it is not there, and has nothing afterwards.
	Scratch string
}

// Fetcher gets artifacts. It is safe for use by several goroutines.
type Fetcher struct{ cfg Config }

// New returns a Fetcher.
func New(cfg Config) *Fetcher { return &Fetcher{cfg} }

// Fetch gets one artifact: an archive into a temporary file, which is unpacked, and any other file right to its place. Errors:
// Invalid, NotImplemented, Forbidden and TooLarge, which a second try cannot mend, and others.
func (f *Fetcher) Fetch(ctx context.Context, r Request) error {
	src, err := parse(r.Source, r.Options)
	if err != nil {
		return err
	}
	limit, key := f.timeout(src.kind)
	if limit > 0 && limit < math.MaxInt64 {
		bounded, cancel := f.cfg.Clock.WithTimeout(ctx, limit)
		defer cancel()
		err = f.fetch(bounded, &r, src)
		if err != nil && bounded.Err() != nil && ctx.Err() == nil {
			return drover.Errorf(drover.Unavailable, "it takes longer than %v (client.artifact.%s)", limit, key)
		}
		return err
	}
	return f.fetch(ctx, &r, src)
}

func (f *Fetcher) timeout(kind string) (limit time.Duration, key string) {
	switch kind {
	case kindGit:
		return f.cfg.Timeouts.Git, "git_timeout"
	case kindS3:
		return f.cfg.Timeouts.S3, "s3_timeout"
	case kindGCS:
		return f.cfg.Timeouts.GCS, "gcs_timeout"
	}
	return f.cfg.Timeouts.HTTP, "http_read_timeout"
}

func (f *Fetcher) fetch(ctx context.Context, r *Request, src *source) error {
	switch src.kind {
	case kindGit:
		return f.tree(ctx, r, src)
	case kindFile:
		return f.object(ctx, r, src, func(context.Context) (io.ReadCloser, error) {
			return openLocal(r.Local, src.url.Path)
		})
	case kindS3, kindGCS:
		b, err := f.bucket(src, r.Headers)
		if err != nil {
			return err
		}
		return f.fromBucket(ctx, r, src, b)
	}
	return f.object(ctx, r, src, func(ctx context.Context) (io.ReadCloser, error) {
		return f.open(ctx, r.Headers, src)
	})
}

// opener returns an artifact's content. It is asked once.
type opener func(context.Context) (io.ReadCloser, error)

// object gets what is one file at its source. Mode "any", which is also the default, unpacks what is an archive by its name and
// keeps the rest as a file.
func (f *Fetcher) object(ctx context.Context, r *Request, src *source, open opener) error {
	kind := archiveKind(src.url.Path, src.options["archive"])
	switch {
	case r.Mode == "file" && src.subdir != "":
		return drover.Errorf(drover.Invalid, "mode file takes one file: // names a folder in an archive")
	case r.Mode == "file":
		return f.place(ctx, r, src, r.Path, open)
	case kind != "":
		return f.unpack(ctx, r, src, open, kind)
	case r.Mode == "dir":
		return drover.Errorf(drover.Invalid, "mode dir needs an archive, a repository or a folder of a bucket")
	case src.subdir != "":
		return drover.Errorf(drover.Invalid, "// names a folder in an archive or a repository, and %s is none", path.Base(src.url.Path))
	}
	name := src.options["filename"]
	if name == "" {
		name = path.Base(src.url.Path)
	}
	if name == "/" || name == "." || name == ".." || strings.ContainsRune(name, '/') {
		return drover.Errorf(drover.Invalid, "the source has no file name")
	}
	return f.place(ctx, r, src, filepath.Join(r.Path, name), open)
}

// place downloads to the file, which is not there if that fails. An existing one is replaced, not written into: it could be a link, or
// have more hard links.
func (f *Fetcher) place(ctx context.Context, r *Request, src *source, rel string, open opener) error {
	perm, err := parsePerms(src.options["mode"])
	if err != nil {
		return err
	}
	out, err := replace(r.Root, rel, perm)
	if err != nil {
		return err
	}
	_, err = f.download(ctx, r, src.options["checksum"], open, out, f.cfg.Size)
	if closeErr := forked.Close(out); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = r.Root.Remove(rel)
	}
	return err
}

// replace makes a new file in place of what has its name.
func replace(root *os.Root, rel string, perm os.FileMode) (*os.File, error) {
	if err := makeParents(root, rel); err != nil {
		return nil, err
	}
	_ = root.Remove(rel)
	return root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
}

// makeParents makes the missing folders above rel, open to every user: tasks run as users of their own choice.
func makeParents(root *os.Root, rel string) error {
	if parent := filepath.Dir(rel); parent != "." {
		return root.MkdirAll(parent, 0o777)
	}
	return nil
}

// parsePerms reads permissions in octal; "" is 0644.
func parsePerms(s string) (os.FileMode, error) {
	if s == "" {
		return 0o644, nil
	}
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n > 0o777 {
		return 0, drover.Errorf(drover.Invalid, "option mode: %q is no octal number up to 0777", s)
	}
	return os.FileMode(n), nil
}

// unpack downloads an archive to an unlinked temporary file in the allocation's folder, and unpacks that.
func (f *Fetcher) unpack(ctx context.Context, r *Request, src *source, open opener, kind string) error {
	temp, err := os.CreateTemp(r.Root.Name(), ".artifact-")
	if err != nil {
		return fmt.Errorf("making a temporary file: %w", err)
	}
	defer func() { _ = temp.Close() }()
	_ = os.Remove(temp.Name())
	if _, err := f.download(ctx, r, src.options["checksum"], open, temp, f.cfg.Size); err != nil {
		return err
	}
	if _, err := temp.Seek(0, io.SeekStart); err != nil {
		return err
	}
	u, err := f.unpacker(ctx, r, src.subdir)
	if err != nil {
		return err
	}
	return u.unpack(temp, kind)
}

// unpacker returns one for the request, under what the node and its disk allow.
func (f *Fetcher) unpacker(ctx context.Context, r *Request, subdir string) (*unpacker, error) {
	most, err := room(r.Root, f.cfg.Unpacked)
	if err != nil {
		return nil, err
	}
	return &unpacker{
		ctx: ctx, root: r.Root, base: r.Path, subdir: subdir, left: most, most: most, entries: f.cfg.Files, mostEntries: f.cfg.Files,
	}, nil
}

// piece is how much of an artifact is read and written at once, at most.
const piece = 256 << 10

// download writes the artifact to the file, and compares its checksum.
func (f *Fetcher) download(ctx context.Context, r *Request, checksum string, open opener, to *os.File, bound int64) (int64, error) {
	sum, want, err := parseChecksum(checksum)
	if err != nil {
		return 0, err
	}
	body, err := open(ctx)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	room, err := room(r.Root, bound)
	if err != nil {
		return 0, err
	}
	out := io.MultiWriter(to) // which hides that the file would read by itself, in small pieces
	if want != "" {
		out = io.MultiWriter(to, sum)
	}
	n, err := io.CopyBuffer(out, io.LimitReader(body, room+1), make([]byte, piece))
	switch {
	case err != nil:
		return n, err
	case n > room:
		return n, drover.Errorf(drover.TooLarge, "it has more than %d bytes, which are what the node takes (client.artifact.http_max_size), "+
			"or what its disk has", room)
	case want != "" && hex.EncodeToString(sum.Sum(nil)) != want:
		return n, drover.Errorf(drover.Invalid, "checksum is %x, not %s", sum.Sum(nil), want)
	}
	return n, nil
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
func (f *Fetcher) open(ctx context.Context, headers map[string]string, src *source) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, src.url.String(), nil)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "source: %w", err)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	res, err := f.cfg.HTTP.Do(req)
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
func openLocal(allowed bool, path string) (io.ReadCloser, error) {
	if !allowed {
		return nil, drover.Errorf(drover.Invalid, "%s: files of the node are for jobs only where raw_exec is enabled, and "+
			"denied_host_uids and denied_host_gids do not name the agent's own user (plugin \"raw_exec\")", path)
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
