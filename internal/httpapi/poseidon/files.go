package poseidon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
)

// updateRequest is the body of PATCH …/files. All deletions come before all copies, whatever their order in the
// body.
type updateRequest struct {
	Delete []string     `json:"delete"`
	Copy   []copiedFile `json:"copy"`
}

// copiedFile is one file to be written; its content is base64 in JSON.
type copiedFile struct {
	Path    string `json:"path"` // with a final slash: a directory
	Content []byte `json:"content"`
}

// updateFiles deletes, then copies. All of it happens in the runner as root.
func (f *Face) updateFiles(w http.ResponseWriter, r *http.Request) error {
	files, done, err := f.Runners.Files(r.Context(), r.PathValue("runner"))
	if err != nil {
		return runnerError(err)
	}
	defer done()
	var req updateRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	changes, err := changesOf(req)
	if err != nil {
		return err
	}
	if len(changes) > 0 {
		if err := applyAll(r.Context(), files, changes); err != nil {
			return f.fileError(r, err)
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// applyAll makes all changes that can be made: as with tar, one that cannot does not keep the others from being made.
// The error names each of those, in tar's words for files, which clients look for.
func applyAll(ctx context.Context, files execution.Files, changes []execution.FileChange) error {
	err := files.Apply(ctx, changes)
	if err == nil || !ofFile(err) {
		return err
	}
	var failed []error
	for _, c := range changes {
		switch err := files.Apply(ctx, []execution.FileChange{c}); {
		case err == nil:
		case !ofFile(err):
			return err
		case c.Write:
			failed = append(failed, fmt.Errorf("copy: Cannot open: %w", err))
		default:
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// ofFile reports whether the error is of one file, not of the runner.
func ofFile(err error) bool {
	switch drover.CodeOf(err) {
	case drover.Gone, drover.Unavailable, drover.Canceled, drover.NotImplemented:
		return false
	}
	return true
}

// changesOf turns the request into changes for the runner, deletions first. An empty path or one with a NUL byte is
// 400: no file can have it. The path "./*" keeps its form, because it means "everything here" and Clean would make
// "*" of it.
func changesOf(req updateRequest) ([]execution.FileChange, error) {
	changes := make([]execution.FileChange, 0, len(req.Delete)+len(req.Copy))
	for _, p := range req.Delete {
		if p == "" || strings.ContainsRune(p, 0) {
			return nil, &reply{status: http.StatusBadRequest, message: fmt.Sprintf("delete: bad path %q", p)}
		}
		if p != "./*" { // a glob only in this form
			p = path.Clean(p)
		}
		changes = append(changes, execution.FileChange{Path: p, Delete: true})
	}
	for _, c := range req.Copy {
		if c.Path == "" || strings.ContainsRune(c.Path, 0) {
			return nil, &reply{status: http.StatusBadRequest, message: fmt.Sprintf("copy: bad path %q", c.Path)}
		}
		if strings.HasSuffix(c.Path, "/") {
			changes = append(changes, execution.FileChange{Path: path.Clean(c.Path), Mkdir: true})
		} else {
			changes = append(changes, execution.FileChange{Path: path.Clean(c.Path), Write: true, Data: c.Content})
		}
	}
	return changes, nil
}

// fileError tells a runner that went away from a file that cannot be changed.
func (f *Face) fileError(r *http.Request, err error) error {
	if _, gone := f.Runners.Runner(r.Context(), r.PathValue("runner")); gone != nil {
		return runnerError(gone)
	}
	switch drover.CodeOf(err) {
	case drover.Unavailable:
		return err
	}
	return &reply{http.StatusInternalServerError, "file copy failed: " + err.Error(), codeUnknown}
}

// missing maps the errors of reading to the contract's 424.
func (f *Face) missing(r *http.Request, err error) error {
	if _, ok := errors.AsType[*httpapi.StatusError](err); ok {
		return err // of a range
	}
	switch drover.CodeOf(err) {
	case drover.NotFound, drover.Forbidden, drover.Invalid:
		return &reply{status: http.StatusFailedDependency, message: textNoFile}
	}
	if _, gone := f.Runners.Runner(r.Context(), r.PathValue("runner")); gone != nil {
		return runnerError(gone)
	}
	return err
}

// fileHeader is one entry of a listing, with its keys in the contract's order. Times are Unix seconds, sizes bytes,
// and entryType is the first letter of ls -l.
type fileHeader struct {
	Name             string `json:"name"`
	EntryType        string `json:"entryType"`
	LinkTarget       string `json:"linkTarget,omitempty"`
	Size             int64  `json:"size"`
	ModificationTime int64  `json:"modificationTime"`
	Permissions      string `json:"permissions"`
	Owner            string `json:"owner"`
	Group            string `json:"group"`
}

// listFiles imitates ls -l, from which Poseidon makes its listing: it leaves out hidden files, and shows a link
// under its own path as a link. Without a valid "recursive" the listing is recursive. Only recursive listings have
// the path before each name.
func (f *Face) listFiles(w http.ResponseWriter, r *http.Request) error {
	files, done, err := f.Runners.Files(r.Context(), r.PathValue("runner"))
	if err != nil {
		return runnerError(err)
	}
	defer done()
	q := r.URL.Query()
	req := execution.FileRequest{Path: q.Get("path"), Recursive: true, Privileged: truthy(q, "privilegedExecution")}
	if recursive, err := strconv.ParseBool(q.Get("recursive")); err == nil {
		req.Recursive = recursive
	}
	if req.Path == "" {
		req.Path = "./"
	}
	if link, ok := asLink(r.Context(), files, req); ok {
		return writeListing(w, "", []execution.FileInfo{link})
	}
	infos, err := files.List(r.Context(), req)
	if err != nil {
		return f.missing(r, err)
	}
	if isFile(r.Context(), files, req, infos) {
		infos[0].Path = req.Path // as ls names it
		return writeListing(w, "", infos)
	}
	prefix := ""
	if req.Recursive {
		prefix = strings.TrimSuffix(req.Path, "/") + "/"
	}
	return writeListing(w, prefix, slices.DeleteFunc(infos, hidden))
}

// asLink finds a symbolic link under the very path that was asked for: ls -l shows it, and follows it only where the path
// goes on with a slash.
func asLink(ctx context.Context, files execution.Files, req execution.FileRequest) (link execution.FileInfo, ok bool) {
	name := path.Base(req.Path)
	if strings.HasSuffix(req.Path, "/") || name == "." || name == ".." {
		return link, false
	}
	beside, err := files.List(ctx, execution.FileRequest{Path: path.Dir(req.Path), Privileged: req.Privileged})
	if err != nil {
		return link, false // listing what was asked for says why, or can do without
	}
	at := slices.IndexFunc(beside, func(info execution.FileInfo) bool { return info.Path == name && info.Type == "l" })
	if at < 0 {
		return link, false
	}
	beside[at].Path = req.Path
	return beside[at], true
}

// isFile reports whether what was listed is itself all there is in the listing. A directory may hold one thing with its
// own name: then that can be listed.
func isFile(ctx context.Context, files execution.Files, req execution.FileRequest, infos []execution.FileInfo) bool {
	name := path.Base(req.Path)
	if len(infos) != 1 || infos[0].Path != name || infos[0].Type == "d" {
		return false
	}
	req.Path += "/" + name
	_, err := files.List(ctx, req)
	return err != nil
}

// writeListing writes entries in the contract's spacing.
func writeListing(w http.ResponseWriter, prefix string, infos []execution.FileInfo) error {
	var out bytes.Buffer
	out.WriteString(`{"files": [`)
	first := true
	for _, info := range infos {
		entry, err := json.Marshal(fileHeader{
			Name: prefix + info.Path, EntryType: info.Type, LinkTarget: info.LinkTarget, Size: info.Size,
			ModificationTime: info.ModTime.Unix(), Permissions: permissions(info.Mode), Owner: info.Owner, Group: info.Group,
		})
		if err != nil {
			return err
		}
		if !first {
			out.WriteByte(',')
		}
		first = false
		out.Write(entry)
	}
	out.WriteString("]}")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(out.Bytes()) // fails only when the client is gone
	return nil
}

// hidden is what ls without -a leaves out.
func hidden(info execution.FileInfo) bool {
	return strings.HasPrefix(info.Path, ".") || strings.Contains(info.Path, "/.")
}

// permissions renders the nine letters of ls, with s, S, t and T.
func permissions(mode uint32) string {
	letters := []byte(fs.FileMode(mode & 0o777).String()[1:])
	special := func(bit uint32, at int, with, without byte) {
		if mode&bit == 0 {
			return
		}
		if letters[at] == 'x' {
			letters[at] = with
		} else {
			letters[at] = without
		}
	}
	special(0o4000, 2, 's', 'S')
	special(0o2000, 5, 's', 'S')
	special(0o1000, 8, 't', 'T')
	return string(letters)
}

// rawFile sends a file, or a range of it. Its length is that of the opened file; what has none (as in /proc) is sent
// chunked.
func (f *Face) rawFile(w http.ResponseWriter, r *http.Request) error {
	files, done, err := f.Runners.Files(r.Context(), r.PathValue("runner"))
	if err != nil {
		return runnerError(err)
	}
	defer done()
	q := r.URL.Query()
	name := q.Get("path")
	if name == "" {
		return &reply{status: http.StatusFailedDependency, message: textNoFile}
	}
	req := execution.FileRequest{Path: name, Privileged: truthy(q, "privilegedExecution")}
	err = httpapi.Download(w, r, files, req, func(execution.FileInfo) {
		w.Header().Set("Content-Disposition", disposition(name))
	})
	if err != nil {
		return f.missing(r, err)
	}
	return nil
}

// disposition quotes the name, and encodes one that is not plain ASCII (RFC 5987).
func disposition(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "attachment; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	}
	if plain := mime.FormatMediaType("attachment", map[string]string{"filename": name}); strings.Contains(plain, "*=") {
		return plain
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name)
	return `attachment; filename="` + quoted + `"`
}

// truthy reads a boolean of the query; what is missing or malformed is false, and no error, as in Poseidon.
func truthy(q url.Values, key string) bool {
	v, err := strconv.ParseBool(q.Get(key))
	return err == nil && v
}
