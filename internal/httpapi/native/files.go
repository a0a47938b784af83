package native

import (
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"drover"
	"drover/internal/httpapi"
)

// File is a file as listed; a name that is not UTF-8 stands in PathBase64 as it is.
type File struct {
	drover.FileInfo
	PathBase64 string `json:"pathBase64,omitempty"`
}

// onFiles calls do with the runner's files; the runner counts as used meanwhile.
func (f *Face) onFiles(r *http.Request, do func(drover.Files) error) error {
	files, finish, err := f.Runners.Files(r.Context(), r.PathValue("runner"))
	if err != nil {
		return err
	}
	defer finish()
	return do(files)
}

// fileRequest reads path (or pathBase64), recursive and privileged.
func fileRequest(r *http.Request) (req drover.FileRequest, err error) {
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
func filePath(r *http.Request) (drover.FileRequest, error) {
	req, err := fileRequest(r)
	if err == nil && req.Path == "" {
		err = drover.Errorf(drover.Invalid, "path: missing")
	}
	return req, err
}

func (f *Face) listFiles(w http.ResponseWriter, r *http.Request) error {
	req, err := fileRequest(r)
	if err != nil {
		return err
	}
	if req.Path == "" {
		req.Path = "."
	}
	return f.onFiles(r, func(files drover.Files) error {
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

func (f *Face) changeFiles(w http.ResponseWriter, r *http.Request) error {
	var changes []drover.FileChange
	if err := httpapi.DecodeStrictJSON(r, &changes); err != nil {
		return err
	}
	for i, c := range changes {
		kinds := 0
		for _, is := range []bool{c.Delete, c.Mkdir, c.Write} {
			if is {
				kinds++
			}
		}
		if kinds != 1 || c.Path == "" || strings.ContainsRune(c.Path, 0) {
			return drover.Errorf(drover.Invalid, "[%d]: want a path, and exactly one of delete, mkdir and write", i)
		}
	}
	return f.onFiles(r, func(files drover.Files) error { return done(w, files.Apply(r.Context(), changes)) })
}

func (f *Face) deleteFile(w http.ResponseWriter, r *http.Request) error {
	req, err := filePath(r)
	if err != nil {
		return err
	}
	return f.onFiles(r, func(files drover.Files) error {
		return done(w, files.Apply(r.Context(), []drover.FileChange{{Path: req.Path, Delete: true}}))
	})
}

func (f *Face) writeFile(w http.ResponseWriter, r *http.Request) error {
	req, err := filePath(r)
	if err != nil {
		return err
	}
	change := drover.FileChange{Path: req.Path, Write: true, Owner: r.URL.Query().Get("owner")}
	if text := r.URL.Query().Get("mode"); text != "" {
		mode, err := strconv.ParseUint(text, 8, 12)
		if err != nil {
			return drover.Errorf(drover.Invalid, "mode: want permission bits in octal, got %q", text)
		}
		change.Mode = uint32(mode)
	}
	return f.onFiles(r, func(files drover.Files) error { return done(w, files.Write(r.Context(), change, r.Body)) })
}

func (f *Face) readFile(w http.ResponseWriter, r *http.Request) error {
	req, err := filePath(r)
	if err != nil {
		return err
	}
	part, err := parseRange(r.Header.Get("Range"))
	if err != nil {
		return err
	}
	return f.onFiles(r, func(files drover.Files) error {
		if part.suffix > 0 { // the last bytes: the size must be known first
			info, body, err := files.Read(r.Context(), req)
			if err != nil {
				return err
			}
			_ = body.Close() // only its size was wanted
			part.from, part.to = max(0, info.Size-part.suffix), info.Size-1
		}
		req.Offset = part.from
		if part.to >= 0 && part.given {
			req.Length = part.to - part.from + 1
		}
		info, body, err := files.Read(r.Context(), req)
		if err != nil {
			return err
		}
		defer body.Close()
		return sendFile(w, info, body, part)
	})
}

func sendFile(w http.ResponseWriter, info drover.FileInfo, body io.Reader, part byteRange) error {
	if info.Type == "d" {
		return drover.Errorf(drover.Invalid, "path: it is a directory")
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Accept-Ranges", "bytes")
	h.Set("Last-Modified", info.ModTime.UTC().Format(http.TimeFormat))
	if info.Type != "-" || info.Size == 0 { // as in /proc: nobody knows how much it will be
		_, err := io.Copy(w, body)
		return err
	}
	length := info.Size
	if part.given {
		if part.from >= info.Size {
			h.Set("Content-Range", fmt.Sprintf("bytes */%d", info.Size))
			return &httpapi.StatusError{
				Status: http.StatusRequestedRangeNotSatisfiable,
				Err:    drover.Errorf(drover.Invalid, "Range: the file has %d bytes", info.Size),
			}
		}
		last := info.Size - 1
		if part.to >= 0 {
			last = min(last, part.to)
		}
		length = last - part.from + 1
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", part.from, last, info.Size))
		h.Set("Content-Length", strconv.FormatInt(length, 10))
		w.WriteHeader(http.StatusPartialContent)
	} else {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	_, err := io.CopyN(w, body, length) // a file that shrank meanwhile cuts the connection, visibly
	return err
}

// byteRange is what a Range header asks for; to < 0: to the end.
type byteRange struct {
	given    bool
	from, to int64
	suffix   int64
}

// parseRange understands one range; several are answered with the whole file, as RFC 9110 allows.
func parseRange(header string) (byteRange, error) {
	spec, ok := strings.CutPrefix(header, "bytes=")
	if !ok || strings.Contains(spec, ",") {
		return byteRange{to: -1}, nil
	}
	first, last, ok := strings.Cut(strings.TrimSpace(spec), "-")
	if !ok {
		return byteRange{}, drover.Errorf(drover.Invalid, "Range: want bytes=FROM-TO, got %q", header)
	}
	out := byteRange{given: true, to: -1}
	var err1, err2 error
	switch {
	case first == "":
		if out.suffix, err1 = strconv.ParseInt(last, 10, 62); out.suffix == 0 && err1 == nil {
			out.from = math.MaxInt64 >> 2 // nothing: behind any end
		}
	case last == "":
		out.from, err1 = strconv.ParseInt(first, 10, 62)
	default:
		out.from, err1 = strconv.ParseInt(first, 10, 62)
		out.to, err2 = strconv.ParseInt(last, 10, 62)
	}
	if err1 != nil || err2 != nil || out.from < 0 || out.suffix < 0 || last != "" && first != "" && out.to < out.from {
		return byteRange{}, drover.Errorf(drover.Invalid, "Range: want bytes=FROM-TO, got %q", header)
	}
	return out, nil
}

func (f *Face) readArchive(w http.ResponseWriter, r *http.Request) error {
	req, err := filePath(r)
	if err != nil {
		return err
	}
	return f.onFiles(r, func(files drover.Files) error {
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

func (f *Face) writeArchive(w http.ResponseWriter, r *http.Request) error {
	req, err := filePath(r)
	if err != nil {
		return err
	}
	return f.onFiles(r, func(files drover.Files) error { return done(w, files.Extract(r.Context(), req, r.Body)) })
}
