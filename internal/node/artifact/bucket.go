package artifact

import (
	"context"
	"io"
	"net/http"
	"path"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/forked"
)

// bucket is one of an object storage.
type bucket interface {
	// get returns an object's content. Errors: NotFound.
	get(ctx context.Context, key string) (io.ReadCloser, error)
	// list returns objects whose keys begin with the prefix, and where the next page begins; "" = nowhere.
	list(ctx context.Context, prefix, page string) (keys []string, next string, err error)
}

// keyed is a bucket and what is wanted of it.
type keyed struct {
	bucket
	key string
}

func (f *Fetcher) bucket(src *source, headers map[string]string) (*keyed, error) {
	if src.subdir != "" {
		return nil, drover.Errorf(drover.Invalid, "// names a folder in an archive or a repository: a folder of a bucket is named by its key")
	}
	var b bucket
	var key string
	var err error
	if src.kind == kindS3 {
		b, key, err = f.s3(src, headers)
	} else {
		b, key, err = f.gcs(src, headers)
	}
	if err == nil && strings.Trim(key, "/") == "" {
		err = drover.Errorf(drover.Invalid, "the source names no object and no folder of the bucket")
	}
	return &keyed{b, key}, err
}

// fromBucket gets an object, or a folder: what is asked for as one, and in mode "any" what is no object.
func (f *Fetcher) fromBucket(ctx context.Context, r *Request, src *source, b *keyed) error {
	packed := archiveKind(src.url.Path, src.options["archive"]) != ""
	if r.Mode == "dir" && !packed || strings.HasSuffix(b.key, "/") {
		return f.folder(ctx, r, src, b)
	}
	err := f.object(ctx, r, src, func(ctx context.Context) (io.ReadCloser, error) { return b.get(ctx, b.key) })
	if drover.CodeOf(err) != drover.NotFound || r.Mode == "file" || packed {
		return again(err)
	}
	if none := f.folder(ctx, r, src, b); drover.CodeOf(none) != drover.NotFound {
		return none
	}
	return again(err)
}

// again makes an error one that may be tried again: what is not there may come.
func again(err error) error {
	if drover.CodeOf(err) == drover.NotFound {
		return drover.Errorf(drover.Unavailable, "%w", err)
	}
	return err
}

// folder gets all objects of a folder. Together they count as one artifact. Errors: NotFound for a folder without any.
func (f *Fetcher) folder(ctx context.Context, r *Request, src *source, b *keyed) error {
	if src.options["checksum"] != "" {
		return drover.Errorf(drover.Invalid, "checksum is of a file, and %s is a folder of the bucket", b.key)
	}
	perm, err := parsePerms(src.options["mode"])
	if err != nil {
		return err
	}
	prefix, left, count, listed := strings.TrimRight(b.key, "/")+"/", f.cfg.Size, 0, 0
	for page := ""; ; {
		keys, next, err := b.list(ctx, prefix, page)
		if err != nil {
			return err
		}
		// What is no object of the folder counts, too, and so does a page without any: a list that never ends has neither.
		if listed += 1 + len(keys); listed > 2*(f.cfg.Files+1) {
			return drover.Errorf(drover.TooLarge, "the bucket's list has more than the %d objects of a folder that the node's "+
				"client.artifact.decompression_file_count_limit allows", f.cfg.Files)
		}
		for _, key := range keys {
			rel, inside := strings.CutPrefix(key, prefix)
			if !inside || rel == "" || strings.HasSuffix(rel, "/") {
				continue // what tools make to show an empty folder
			}
			if !filepath.IsLocal(rel) {
				return drover.Errorf(drover.Invalid, "object %q leads out of the folder", key)
			}
			if count++; count > f.cfg.Files {
				return drover.Errorf(drover.TooLarge, "the folder has more than %d objects, which the node's "+
					"client.artifact.decompression_file_count_limit allows", f.cfg.Files)
			}
			out, err := replace(r.Root, filepath.Join(r.Path, rel), perm)
			if err != nil {
				return err
			}
			n, err := f.download(ctx, r, "", func(ctx context.Context) (io.ReadCloser, error) { return b.get(ctx, key) }, out, left)
			if closeErr := forked.Close(out); err == nil {
				err = closeErr
			}
			if err != nil {
				_ = r.Root.Remove(filepath.Join(r.Path, rel))
				return again(err)
			}
			left -= n
		}
		if next == "" || next == page {
			break
		}
		page = next
	}
	if count == 0 {
		return drover.Errorf(drover.NotFound, "the bucket has nothing in %s", path.Clean(prefix))
	}
	return nil
}

// maxAnswer bounds what is read of an answer that is no object.
const maxAnswer = 8 << 20

// answered reads an answer that is no object; it closes it.
func answered(res *http.Response) ([]byte, error) {
	defer res.Body.Close()
	return io.ReadAll(io.LimitReader(res.Body, maxAnswer))
}
