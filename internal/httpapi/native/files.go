package native

import (
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
)

// fileOperations are those on the files of a runner.
func (f *Face) fileOperations() []operation {
	return []operation{
		{
			Route:   httpapi.Route{Pattern: "GET /v1/runner/{runner}/files", Where: onRunner, Need: readsFiles, Handle: f.listFiles},
			summary: "List files",
			query:   []param{pathParam, path64Param, {Name: "recursive", Kind: "boolean", About: "with everything below"}, privilegedParam},
			out:     []File{},
		},
		{
			Route: httpapi.Route{
				Pattern: "POST /v1/runner/{runner}/files", Where: onRunner, Need: writesFiles,
				Handle: f.changeFiles, MaxBody: f.MaxFiles,
			},
			summary: "Write, make and delete files, in order",
			in:      []execution.FileChange{},
		},
		{
			Route:   httpapi.Route{Pattern: "DELETE /v1/runner/{runner}/files", Where: onRunner, Need: writesFiles, Handle: f.deleteFile},
			summary: "Delete a file or directory",
			query:   []param{pathParam, path64Param},
		},
		{
			Route:   httpapi.Route{Pattern: "GET /v1/runner/{runner}/file", Where: onRunner, Need: readsFiles, Handle: f.readFile, Stream: true},
			summary: "Read a file, with ranges",
			query:   []param{pathParam, path64Param, privilegedParam, rangeParam},
			raw:     "out", status: []int{http.StatusOK, http.StatusPartialContent, http.StatusNotModified},
		},
		{
			Route:   httpapi.Route{Pattern: "PUT /v1/runner/{runner}/file", Where: onRunner, Need: writesFiles, Handle: f.writeFile, MaxBody: -1},
			summary: "Write a file from the body, atomically",
			query:   []param{pathParam, path64Param, modeParam, ownerParam},
			raw:     "in",
		},
		{
			Route: httpapi.Route{
				Pattern: "GET /v1/runner/{runner}/archive", Where: onRunner, Need: readsFiles,
				Handle: f.readArchive, Stream: true,
			},
			summary: "Read a directory as tar",
			query:   []param{pathParam, path64Param, privilegedParam},
			raw:     "tar out",
		},
		{
			Route: httpapi.Route{
				Pattern: "PUT /v1/runner/{runner}/archive", Where: onRunner, Need: writesFiles,
				Handle: f.writeArchive, MaxBody: -1,
			},
			summary: "Unpack a tar into a directory",
			query:   []param{pathParam, path64Param, privilegedParam},
			raw:     "tar in",
		},
	}
}

// File is a file as listed; a name that is not UTF-8 stands in PathBase64 as it is.
type File struct {
	execution.FileInfo
	PathBase64 string `json:"pathBase64,omitempty"`
}

// onFiles calls do with the runner's files; the runner counts as used meanwhile.
func (f *Face) onFiles(r *http.Request, do func(execution.Files) error) error {
	files, finish, err := f.Runners.Files(r.Context(), r.PathValue("runner"))
	if err != nil {
		return err
	}
	defer finish()
	return do(files)
}

// fileRequest reads path (or pathBase64), recursive and privileged.
func fileRequest(r *http.Request) (req execution.FileRequest, err error) {
	q := r.URL.Query()
	req.Path = q.Get("path")
	if raw := q.Get("pathBase64"); raw != "" {
		p, err := base64.URLEncoding.DecodeString(raw)
		if err != nil {
			return req, drover.Errorf(drover.Invalid, "pathBase64: %w", err)
		}
		req.Path = string(p)
	}
	if strings.ContainsRune(req.Path, 0) {
		return req, drover.Errorf(drover.Invalid, "path: it has a NUL byte")
	}
	if req.Recursive, err = flag(r, "recursive"); err != nil {
		return req, err
	}
	req.Privileged, err = flag(r, "privileged")
	return req, err
}

// flag reads a boolean of the query; false without one. Errors: Invalid.
func flag(r *http.Request, name string) (bool, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	v, err := strconv.ParseBool(text)
	if err != nil {
		return false, drover.Errorf(drover.Invalid, "%s: want true or false, got %q", name, text)
	}
	return v, nil
}

// filePath is fileRequest where a path is needed.
func filePath(r *http.Request) (execution.FileRequest, error) {
	req, err := fileRequest(r)
	if err == nil && req.Path == "" {
		err = drover.Errorf(drover.Invalid, "path: missing")
	}
	return req, err
}

// listFiles answers GET /v1/runner/ID/files. Without a path it lists the working directory. Linux allows any bytes
// in names, but JSON only UTF-8, hence PathBase64.
func (f *Face) listFiles(w http.ResponseWriter, r *http.Request) error {
	req, err := fileRequest(r)
	if err != nil {
		return err
	}
	if req.Path == "" {
		req.Path = "."
	}
	return f.onFiles(r, func(files execution.Files) error {
		infos, err := files.List(r.Context(), req)
		if err != nil {
			return err
		}
		list := make([]File, len(infos))
		for i, info := range infos {
			list[i].FileInfo = info
			if !utf8.ValidString(info.Path) {
				list[i].PathBase64 = base64.URLEncoding.EncodeToString([]byte(info.Path))
			}
		}
		return httpapi.WriteJSON(w, r, http.StatusOK, list)
	})
}

// changeFiles applies a list of changes in order. All of them are checked before the first one is made; a later
// failure leaves those before it in place.
func (f *Face) changeFiles(w http.ResponseWriter, r *http.Request) error {
	var changes []execution.FileChange
	if err := httpapi.DecodeStrictJSON(r, &changes); err != nil {
		return err
	}
	if err := execution.PrepareChanges(changes); err != nil {
		return err
	}
	return f.onFiles(r, func(files execution.Files) error { return done(w, files.Apply(r.Context(), changes)) })
}

// deleteFile answers DELETE /v1/runner/ID/files for one file, or for one directory with all below it.
func (f *Face) deleteFile(w http.ResponseWriter, r *http.Request) error {
	req, err := filePath(r)
	if err != nil {
		return err
	}
	return f.onFiles(r, func(files execution.Files) error {
		return done(w, files.Apply(r.Context(), []execution.FileChange{{Path: req.Path, Delete: true}}))
	})
}

// writeFile streams the body into one file, of any size. It fails with a timeout when no byte comes for
// UploadStall, because the runner does not become idle meanwhile.
func (f *Face) writeFile(w http.ResponseWriter, r *http.Request) error {
	req, err := filePath(r)
	if err != nil {
		return err
	}
	change := execution.FileChange{Path: req.Path, Write: true, Owner: r.URL.Query().Get("owner")}
	if text := r.URL.Query().Get("mode"); text != "" {
		mode, err := strconv.ParseUint(text, 8, 12)
		if err != nil {
			return drover.Errorf(drover.Invalid, "mode: want permission bits in octal, got %q", text)
		}
		change.Mode = uint32(mode)
	}
	return f.onFiles(r, func(files execution.Files) error {
		return done(w, files.Write(r.Context(), change, httpapi.Upload(w, r, f.Clock, f.UploadStall)))
	})
}

// readFile streams one file, or the ranges of it that the client asks for. The type is never guessed from the
// content: a browser must not run what a program in the runner has written.
func (f *Face) readFile(w http.ResponseWriter, r *http.Request) error {
	req, err := filePath(r)
	if err != nil {
		return err
	}
	return f.onFiles(r, func(files execution.Files) error {
		return httpapi.Download(w, r, files, req, func(execution.FileInfo) { w.Header().Set("Content-Type", "application/octet-stream") })
	})
}

// readArchive streams a directory as tar. An error after the first byte can only cut the connection, since the
// status is sent by then.
func (f *Face) readArchive(w http.ResponseWriter, r *http.Request) error {
	req, err := filePath(r)
	if err != nil {
		return err
	}
	return f.onFiles(r, func(files execution.Files) error {
		tar, err := files.Archive(r.Context(), req)
		if err != nil {
			return err
		}
		defer tar.Close()
		w.Header().Set("Content-Type", "application/x-tar")
		_, err = io.Copy(w, tar)
		return err
	})
}

// writeArchive unpacks the body, a tar of any size, below the path. It is not atomic: what was unpacked before an
// error stays.
func (f *Face) writeArchive(w http.ResponseWriter, r *http.Request) error {
	req, err := filePath(r)
	if err != nil {
		return err
	}
	return f.onFiles(r, func(files execution.Files) error {
		return done(w, files.Extract(r.Context(), req, httpapi.Upload(w, r, f.Clock, f.UploadStall)))
	})
}
