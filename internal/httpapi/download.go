package httpapi

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// Download answers with a file of a runner, or with the one range of it that the request's header asks for, if the
// request's conditions hold. head may set further headers; it is called when the file is there. What is not a regular file
// (as in /proc) has no length and no ranges. Errors: those of files.Read; Invalid: a directory; StatusError: a bad range
// (400), one that the file does not have (416), a condition that does not hold (412).
func Download(w http.ResponseWriter, r *http.Request, files execution.Files, req execution.FileRequest, head func(execution.FileInfo)) error {
	part, err := parseRange(r.Header.Get("Range"))
	if err != nil {
		return err
	}
	if condition := r.Header.Get("If-Range"); part.given && (part.suffix > 0 || condition != "") { // what the file is must be known first
		info, body, err := files.Read(r.Context(), req)
		if err != nil {
			return err
		}
		_ = body.Close() // only what it is was wanted
		switch {
		case condition != "" && !sameFile(condition, info):
			part = byteRange{to: -1}
		case part.suffix > 0:
			part.from, part.to = max(0, info.Size-part.suffix), info.Size-1
		}
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
	if info.Type == "d" {
		return drover.Errorf(drover.Invalid, "path: it is a directory")
	}
	setValidators(w.Header(), info)
	switch status := precondition(r, info); {
	case status == http.StatusPreconditionFailed:
		return &StatusError{Status: status, Err: drover.Errorf(drover.Conflict, "the file is another one than the request's conditions say")}
	case status != 0:
		w.WriteHeader(status)
		return nil
	}
	head(info)
	return sendFile(w, info, body, part)
}

func sendFile(w http.ResponseWriter, info execution.FileInfo, body io.Reader, part byteRange) error {
	h := w.Header()
	h.Set("Accept-Ranges", "bytes")
	if info.Type != "-" || info.Size == 0 { // as in /proc: nobody knows how much it will be
		_, err := io.Copy(w, body)
		return err
	}
	length := info.Size
	if part.given {
		if part.from >= info.Size {
			h.Set("Content-Range", fmt.Sprintf("bytes */%d", info.Size))
			return &StatusError{
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

func badRange(header string) error {
	return &StatusError{
		Status: http.StatusBadRequest,
		Err:    drover.Errorf(drover.Invalid, "Range: want bytes=FROM-TO, got %q", header),
	}
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
		return byteRange{}, badRange(header)
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
		if out.to, err2 = strconv.ParseInt(last, 10, 62); errors.Is(err2, strconv.ErrRange) { // it is at the end by then
			err2 = nil
		}
	}
	if err1 != nil || err2 != nil || out.from < 0 || out.suffix < 0 || last != "" && first != "" && out.to < out.from {
		return byteRange{}, badRange(header)
	}
	return out, nil
}
