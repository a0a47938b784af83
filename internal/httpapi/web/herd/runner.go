package herd

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/internal/policy"
)

// Bounds of what a page shows of a runner's files.
const (
	shownFiles = 500
	shownFile  = 64 << 10 // bytes
)

// runnerHead is the title of the pages of a runner, and leads to each of them that the viewer may see.
func (h *Pages) runnerHead(r *http.Request, id string) html.Part {
	at := func(more ...string) html.URL { return html.Path(append([]string{"ui", "runners", id}, more...)...) }
	names, to := []string{execText.Runner}, []html.URL{at()}
	for _, part := range []struct {
		name  string
		at    html.URL
		needs policy.Capability
	}{
		{execText.Files, at("files"), policy.ReadFiles},
		{execText.Terminal, at("terminal"), policy.Execute},
	} {
		if h.May(r, execution.NamespaceOf(id), part.needs) {
			names, to = append(names, part.name), append(to, part.at)
		}
	}
	return html.Group(html.El("h1", html.Name(id)), h.Tabs(r, execText.Parts, names, to))
}

// runnerPart shows a part of a runner below its tabs, or what the API said instead.
func (h *Pages) runnerPart(w http.ResponseWriter, r *http.Request, title string, body html.Part, err error, module string) error {
	id := r.PathValue("runner")
	if err != nil {
		body, module = h.Failed(r, err), ""
	}
	return h.Write(w, r, http.StatusOK, id+" · "+title, html.Group(h.runnerHead(r, id), body), module)
}

// fileAsked is the file or folder that an address names, relative to the runner's working directory; "" is that. Names are bytes.
func fileAsked(r *http.Request) string {
	q := r.URL.Query()
	if raw, err := base64.URLEncoding.DecodeString(q.Get("pathBase64")); err == nil && len(raw) > 0 {
		return string(raw)
	}
	return q.Get("path")
}

// named is a query that names a file.
func named(at string) (name, value string) {
	if utf8.ValidString(at) {
		return "path", at
	}
	return "pathBase64", base64.URLEncoding.EncodeToString([]byte(at))
}

// filesAPI is where the API has files of a runner.
func filesAPI(r *http.Request, what, at string) string {
	name, value := named(at)
	return api("runner", r.PathValue("runner"), what) + "?" + url.Values{name: {value}}.Encode()
}

func filesPath(r *http.Request, at string, more ...string) html.URL {
	name, value := named(at)
	return html.Path(append([]string{"ui", "runners", r.PathValue("runner"), "files"}, more...)...).With(name, value)
}

// below is a file in a folder.
func below(folder, name string) string {
	if folder == "" {
		return name
	}
	return path.Join(folder, name)
}

// listed is a file as the API lists it.
type listed struct {
	execution.FileInfo
	PathBase64 string `json:"pathBase64"`
}

// runnerFiles shows a folder of a runner, or the beginning of a file as text.
func (h *Pages) runnerFiles(w http.ResponseWriter, r *http.Request) error {
	at := fileAsked(r)
	if r.URL.Query().Has("text") {
		body, err := h.fileText(r, at)
		return h.runnerPart(w, r, execText.Files, html.Group(fileTrail(r, at), body), err, "")
	}
	var all []listed
	if err := h.Ask(r, filesAPI(r, "files", at), &all); err != nil {
		return h.runnerPart(w, r, execText.Files, html.Part{}, err, "")
	}
	for i := range all {
		if raw, err := base64.URLEncoding.DecodeString(all[i].PathBase64); err == nil && len(raw) > 0 {
			all[i].Path = string(raw)
		}
	}
	slices.SortFunc(all, func(a, b listed) int {
		if (a.Type == "d") != (b.Type == "d") { // folders first
			return map[bool]int{true: -1, false: 1}[a.Type == "d"]
		}
		return cmp.Compare(a.Path, b.Path)
	})
	rows := make([]html.Part, 0, shownFiles)
	for i := range all[:min(len(all), shownFiles)] {
		rows = append(rows, fileRow(r, at, &all[i]))
	}
	cut := html.If(len(all) > shownFiles,
		html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(execText.FirstOf, shownFiles, len(all)))))
	upload := html.El("form", html.Class("row actions"), html.Attr("method", "post"), html.Attr("enctype", "multipart/form-data"),
		html.Action(filesPath(r, at)), html.El("label", html.Attr("for", "upload"), html.Text(execText.UploadTo)),
		html.El("input", html.ID("upload"), html.Class("program"), html.Attr("type", "file"), html.Attr("name", "file"),
			html.Attr("multiple", ""),
			html.Attr("required", "")),
		html.El("button", html.Text(execText.Upload)))
	body := html.Group(fileTrail(r, at), parts.Table(cmp.Or(at, execText.Root), execText.FileColumns, rows, execText.NoFiles), cut,
		html.If(h.May(r, execution.NamespaceOf(r.PathValue("runner")), policy.WriteFiles), upload))
	return h.runnerPart(w, r, execText.Files, body, nil, "")
}

func fileRow(r *http.Request, folder string, f *listed) html.Part {
	at, name, size := below(folder, f.Path), html.Name(f.Path), parts.Size(f.Size)
	switch f.Type {
	case "d":
		name, size = parts.Link(filesPath(r, at), f.Path+"/"), parts.None
	case "-":
		name = parts.Link(filesPath(r, at).With("text", "1"), f.Path)
	case "l":
		name = html.Name(f.Path + " → " + f.LinkTarget)
	}
	return parts.Row(name, html.Text(size), html.Text(f.Type+fs.FileMode(f.Mode & 0o777).String()[1:]), html.Name(f.Owner+":"+f.Group),
		parts.Instant(f.ModTime))
}

// fileTrail leads to each folder that the file is in.
func fileTrail(r *http.Request, at string) html.Part {
	trail := []html.Part{html.Class("code"), html.El("a", html.Href(html.Path("ui", "runners", r.PathValue("runner"), "files")),
		html.Text(execText.Root))}
	if parts.LongPath(at) {
		return html.El("p", append(trail, html.Text(" / "), html.Name(at))...)
	}
	full := ""
	if strings.HasPrefix(at, "/") {
		full = "/"
		trail = append(trail, html.Text(" "), parts.Link(filesPath(r, "/"), "/"))
	}
	for _, name := range strings.Split(strings.Trim(at, "/"), "/") {
		if name != "" {
			full = below(full, name)
			trail = append(trail, html.Text(" / "), parts.Link(filesPath(r, full), name))
		}
	}
	return html.El("p", trail...)
}

// fileText shows the beginning of a file, if it is text: nothing that a program wrote is shown as anything else.
func (h *Pages) fileText(r *http.Request, at string) (html.Part, error) {
	var kept []byte
	err := h.Follow(r, filesAPI(r, "file", at), func(p []byte) error {
		if kept = append(kept, p[:min(len(p), shownFile-len(kept))]...); len(kept) == shownFile {
			return errRead
		}
		return nil
	})
	cut := len(kept) == shownFile
	if err != nil && !cut {
		return html.Part{}, err
	}
	for n := 0; cut && n < utf8.UTFMax && !utf8.Valid(kept); n++ { // it may end within a character
		kept = kept[:len(kept)-1]
	}
	shown := html.El("pre", html.Class("whole"), html.Attr("tabindex", "0"), html.Attr("role", "region"),
		html.Attr("aria-label", execText.Files),
		html.Text(string(kept)))
	if bytes.IndexByte(kept, 0) >= 0 || !utf8.Valid(kept) {
		shown = html.El("p", html.Class("muted"), html.Text(execText.Binary))
	}
	return html.Group(html.El("p", html.El("a", html.Href(filesPath(r, at, "raw")), html.Text(execText.Download)), html.Text(" "),
		html.If(cut, html.El("span", html.Class("muted"), html.Text(fmt.Sprintf(execText.CutFile, parts.Size(shownFile)))))), shown), nil
}

// runnerFile sends a file of a runner, to be stored.
func (h *Pages) runnerFile(w http.ResponseWriter, r *http.Request) error {
	at := fileAsked(r)
	return h.Download(w, r, filesAPI(r, "file", at), strings.ToValidUTF8(path.Base(at), "_"))
}

// runnerUpload writes the files of a form into a folder of the runner, each as it comes.
func (h *Pages) runnerUpload(w http.ResponseWriter, r *http.Request) error {
	at := fileAsked(r)
	form, err := r.MultipartReader()
	if err != nil {
		return drover.Errorf(drover.Invalid, "%s: %w", execText.Upload, err)
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return drover.Errorf(drover.Invalid, "%s: %w", execText.Upload, err)
		}
		name := part.FileName() // without folders
		if part.FormName() != "file" || name == "" {
			continue
		}
		if err := h.Send(r, http.MethodPut, filesAPI(r, "file", below(at, name)), part, nil); err != nil {
			return h.runnerPart(w, r, execText.Files, html.Part{}, fmt.Errorf("%s: %w", name, err), "")
		}
	}
	http.Redirect(w, r, filesPath(r, at).String(), http.StatusSeeOther)
	return nil
}

// runnerTerminal opens a program in a runner.
func (h *Pages) runnerTerminal(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("runner")
	var one execution.Runner
	err := h.Ask(r, api("runner", id), &one)
	body := h.Terminal(html.Path("ui", "runners", id, "terminal", "live"), "runner", html.Part{}, "drover runner exec -i -t "+id+" /bin/sh")
	return h.runnerPart(w, r, execText.Terminal, body, err, "term.js")
}

// runnerTerminalLive is the API's websocket that starts an execution; its first message says which.
func (h *Pages) runnerTerminalLive(w http.ResponseWriter, r *http.Request) error {
	return h.Socket(w, r, api("runner", r.PathValue("runner"), "execute"))
}
