package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// Download answers with a file of a runner, or with the one range of it that the request's header asks for, if the
// request's conditions hold (http.ServeContent). Its route must not compress (Stream), as its tags and ranges are of the
// plain bytes. head may set further headers; it is called when the file is there. What has no known size (as in /proc) has
// no ranges. Errors: those of files.Read; Invalid: a directory; StatusError: a bad range (400), one that the file does not
// have (416), a condition that does not hold (412).
func Download(
	w http.ResponseWriter, r *http.Request, files execution.Files, req execution.FileRequest, head func(execution.FileInfo),
) error {
	asked := r.Header.Get("Range")
	r = r.Clone(r.Context())
	r.Header.Set("Range", servedRange(asked))
	file := &content{open: func(offset, length int64) (execution.FileInfo, io.ReadCloser, error) { //nolint:contextcheck // the request's
		req.Offset, req.Length = offset, length
		return files.Read(r.Context(), req)
	}}
	defer file.close()
	if err := file.begin(r.Method == http.MethodHead || r.Header.Get("Range") != ""); err != nil {
		return err
	}
	head(file.info)
	h := w.Header()
	h.Set("Last-Modified", file.info.ModTime.UTC().Format(http.TimeFormat))
	if file.unsized() { // it has no conditions either: each reading may be another
		_, err := io.Copy(w, io.MultiReader(bytes.NewReader(file.start), file.body))
		return err
	}
	h.Set("ETag", tagOf(file.info))
	v := &verdict{ResponseWriter: w, file: file}
	http.ServeContent(v, r, "", file.info.ModTime, file)
	switch {
	case file.err != nil:
		return file.err
	case v.refused == http.StatusPreconditionFailed:
		return &StatusError{v.refused, drover.Errorf(drover.Conflict, "the file is another one than the request's conditions say")}
	case v.refused != 0 && h.Get("Content-Range") == "": // the range was not even read
		return &StatusError{http.StatusBadRequest, drover.Errorf(drover.Invalid, "Range: want bytes=FROM-TO, got %q", asked)}
	case v.refused != 0:
		return &StatusError{v.refused, drover.Errorf(drover.Invalid, "Range: the file has %d bytes", file.info.Size)}
	}
	return nil
}

// servedRange returns the Range header that http.ServeContent is to see. A unit that nobody knows must be ignored, and
// several ranges may be: each would be another opening on the node.
func servedRange(header string) string {
	spec, known := strings.CutPrefix(header, "bytes=")
	if !known || strings.Contains(spec, ",") {
		return ""
	}
	const far = "999999999999999999" // beyond any file, and within an int64
	first, last, ok := strings.Cut(strings.TrimSpace(spec), "-")
	switch {
	case !ok:
		return header
	case first == "" && last != "" && strings.Trim(last, "0") == "": // the last 0 bytes: none that a file has
		return "bytes=" + far + "-"
	}
	bounded := func(number string) string {
		if len(number) > len(far) && strings.Trim(number, "0123456789") == "" {
			return far
		}
		return number
	}
	return "bytes=" + bounded(first) + "-" + bounded(last)
}

// verdict passes an answer of http.ServeContent on, except for its refusals: their texts are those of no face.
type verdict struct {
	http.ResponseWriter
	file    *content
	refused int // the status of a refusal; 0 = none
}

// WriteHeader begins the answer, unless it is a refusal.
func (v *verdict) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		v.refused = status
		return
	}
	length, _ := strconv.ParseInt(v.Header().Get("Content-Length"), 10, 64) // a 304 has none
	v.file.end = v.file.pos + length
	v.ResponseWriter.WriteHeader(status)
}

// Write drops the text of a refusal.
func (v *verdict) Write(p []byte) (int, error) {
	if v.refused != 0 {
		return len(p), nil
	}
	return v.ResponseWriter.Write(p)
}
