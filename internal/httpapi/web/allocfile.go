package web

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi/runes"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

const (
	filePage   = 64 << 10 // bytes of a file that a page shows
	folderPage = 500      // entries of a folder that a page shows
)

// fsPath is where the API has a file of an allocation, with more parameters by pairs.
func fsPath(what, id, file string, pairs ...string) string {
	q := url.Values{"path": {file}}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return apiPath("client", "fs", what, id) + "?" + q.Encode()
}

// fileAsked is the file or folder that an address names; its beginning is the allocation's folder.
func fileAsked(r *http.Request) string { return path.Join("/", r.URL.Query().Get("path")) }

// files shows a folder of an allocation, or a part of a file as text.
func (f *Face) files(w http.ResponseWriter, r *http.Request) error {
	a, err := f.readAllocation(r)
	if err != nil {
		return f.show(w, r, a.ID, html.Part{}, err)
	}
	at, info := fileAsked(r), drover.AllocFileInfo{IsDir: true}
	if at != "/" {
		err = f.ask(r.Context(), r, http.MethodGet, fsPath("stat", a.ID, at), nil, &info)
	}
	var content html.Part
	switch {
	case err != nil:
	case info.IsDir:
		content, err = f.folder(r, a.ID, at)
	default:
		content, err = f.fileText(r, a.ID, at, info)
	}
	return f.allocPart(w, r, a, allocText.Files, html.Group(fileTrail(a.ID, at), content), err)
}

// fileTrail leads to each folder that the file is in.
func fileTrail(id, at string) html.Part {
	to := allocPath(id, "files")
	trail := []html.Part{html.Class("code"), html.El("a", html.Href(to), html.Text(allocText.Root))}
	full := ""
	if parts.LongPath(at) {
		return html.El("p", append(trail, html.Text(" / "), html.Name(at))...)
	}
	for _, name := range strings.Split(strings.Trim(at, "/"), "/") {
		if name != "" {
			full += "/" + name
			trail = append(trail, html.Text(" / "), link(to.With("path", full), name))
		}
	}
	return html.El("p", trail...)
}

func (f *Face) folder(r *http.Request, id, at string) (html.Part, error) {
	var all []drover.AllocFileInfo
	err := f.ask(r.Context(), r, http.MethodGet, fsPath("ls", id, at), nil, &all)
	slices.SortFunc(all, func(a, b drover.AllocFileInfo) int {
		if a.IsDir != b.IsDir { // folders first
			return map[bool]int{true: -1, false: 1}[a.IsDir]
		}
		return cmp.Compare(a.Name, b.Name)
	})
	rows := make([]html.Part, 0, folderPage)
	for _, file := range all[:min(len(all), folderPage)] {
		name, bytes := file.Name, size(file.Size)
		if file.IsDir {
			name, bytes = name+"/", "–"
		}
		changed, _ := time.Parse(time.RFC3339, file.ModTime) // else a dash
		rows = append(rows, row(link(allocPath(id, "files").With("path", path.Join(at, file.Name)), name), html.Text(bytes),
			html.Text(file.FileMode), instant(changed)))
	}
	more := html.If(len(all) > folderPage,
		html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(allocText.FirstOf, folderPage, len(all)))))
	return html.Group(table(at, allocText.FileColumns, rows, text.Nothing), more), err
}

// fileText shows a part of a file, if it is text: nothing that a task wrote is shown as anything else.
func (f *Face) fileText(r *http.Request, id, at string, info drover.AllocFileInfo) (html.Part, error) {
	from, _ := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64) // else the beginning
	from = max(from, 0)
	var kept []byte
	err := f.follow(r.Context(), r, fsPath("readat", id, at, "offset", strconv.FormatInt(from, 10), "limit", strconv.Itoa(filePage)),
		func(p []byte) error { kept = append(kept, p[:min(len(p), filePage-len(kept))]...); return nil })
	whole, _ := runes.Split(nil, kept)
	next := from + int64(len(whole))
	for i := 0; from > 0 && i < utf8.UTFMax && len(whole) > 0 && !utf8.RuneStart(whole[0]); i++ { // it begins within a character
		whole = whole[1:]
	}
	shown := html.El("pre", html.Class("whole"), html.Attr("tabindex", "0"), html.Attr("role", "region"), html.Attr("aria-label", at),
		html.Text(string(whole)))
	if bytes.IndexByte(whole, 0) >= 0 || !utf8.Valid(whole) {
		shown = html.El("p", html.Class("muted"), html.Text(allocText.Binary))
	}
	to := func(n int64) html.URL {
		return allocPath(id, "files").With("path", at).With("from", strconv.FormatInt(n, 10))
	}
	changed, _ := time.Parse(time.RFC3339, info.ModTime) // else a dash
	return html.Group(
		facts(factOf(allocText.Size, html.Text(size(info.Size))), factOf(allocText.Mode, html.Text(info.FileMode)),
			factOf(allocText.Modified, instant(changed))),
		html.El("p", html.El("a", html.Href(allocPath(id, "files", "raw").With("path", at)), html.Text(allocText.Download)), html.Text(" "),
			html.If(from > 0, html.El("a", html.Href(to(max(0, from-filePage))), html.Text(allocText.Earlier))), html.Text(" "),
			html.If(next < info.Size && len(whole) > 0, html.El("a", html.Href(to(next)), html.Text(allocText.Later)))),
		shown), err
}

// rawFile sends a file of an allocation, to be stored.
func (f *Face) rawFile(w http.ResponseWriter, r *http.Request) error {
	at := fileAsked(r)
	return f.download(w, r, fsPath("cat", r.PathValue("allocation"), at), path.Base(at))
}
