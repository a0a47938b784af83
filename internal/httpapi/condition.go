package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/drover-project/drover/execution"
)

// setValidators tells by what a client knows later whether the file is still the same.
func setValidators(h http.Header, info execution.FileInfo) {
	h.Set("Last-Modified", info.ModTime.UTC().Format(http.TimeFormat))
	if tag := tagOf(info); tag != "" {
		h.Set("ETag", tag)
	}
}

// tagOf changes whenever the file does: its time has nanoseconds. What is not a regular file has none.
func tagOf(info execution.FileInfo) string {
	if info.Type != "-" {
		return ""
	}
	return fmt.Sprintf(`"%x-%x"`, info.ModTime.UnixNano(), info.Size)
}

// precondition evaluates a GET's conditions in the order of RFC 9110, 13.2.2: 304, 412, or 0 for going on.
func precondition(r *http.Request, info execution.FileInfo) (status int) {
	h := r.Header
	if match := h.Get("If-Match"); match != "" {
		if !matches(match, info) {
			return http.StatusPreconditionFailed
		}
	} else if at, ok := timeOf(h, "If-Unmodified-Since"); ok && whole(info).After(at) {
		return http.StatusPreconditionFailed
	}
	if match := h.Get("If-None-Match"); match != "" {
		if matches(match, info) {
			return http.StatusNotModified
		}
	} else if at, ok := timeOf(h, "If-Modified-Since"); ok && !whole(info).After(at) {
		return http.StatusNotModified
	}
	return 0
}

// matches reports whether a list of tags, or "*", has the file's.
func matches(list string, info execution.FileInfo) bool {
	for tag := range strings.SplitSeq(list, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == "*" || tag != "" && tag == tagOf(info) {
			return true
		}
	}
	return false
}

// sameFile reports whether the file is the one of which an If-Range's client has a part: by its tag, or by its date.
func sameFile(condition string, info execution.FileInfo) bool {
	if at, err := http.ParseTime(condition); err == nil {
		return whole(info).Equal(at)
	}
	return tagOf(info) != "" && condition == tagOf(info)
}

func timeOf(h http.Header, name string) (time.Time, bool) {
	at, err := http.ParseTime(h.Get(name))
	return at, err == nil
}

// whole is the file's time as Last-Modified has it.
func whole(info execution.FileInfo) time.Time { return info.ModTime.Truncate(time.Second) }
