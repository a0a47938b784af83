package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/httpapi/web/html"
)

//go:embed static
var files embed.FS

// packed are the assets as they are sent, by name.
type packed struct {
	version string // of all of them
	plain   map[string][]byte
	gzip    map[string][]byte
}

// assets packs them once. Their version is part of their addresses, so that browsers may keep them for ever.
var assets = sync.OnceValue(func() packed {
	p := packed{plain: map[string][]byte{}, gzip: map[string][]byte{}}
	entries, err := files.ReadDir("static")
	if err != nil {
		panic(err) // they are part of the binary
	}
	sum := sha256.New()
	for _, e := range entries {
		content, err := files.ReadFile(path.Join("static", e.Name()))
		if err != nil {
			panic(err) // as above
		}
		_, _ = sum.Write([]byte(e.Name()))
		_, _ = sum.Write(content)
		var small bytes.Buffer
		z, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // the level exists
		_, _ = z.Write(content)                                   // to memory
		_ = z.Close()
		p.plain[e.Name()], p.gzip[e.Name()] = content, small.Bytes()
	}
	p.version = hex.EncodeToString(sum.Sum(nil))[:12]
	return p
})

// asset is the address of one by its name.
func asset(name string) html.URL { return html.Path("ui", "static", assets().version, name) }

// serveAsset sends an asset, compressed where the browser takes that. One of another version is answered, but not kept: an agent that was
// just replaced may have sent the page.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name, all := r.PathValue("name"), assets()
	content, known := all.plain[name]
	protect(w.Header())
	if !known {
		http.Error(w, text.NoPage, http.StatusNotFound)
		return
	}
	if r.PathValue("version") == all.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	w.Header().Set("Vary", "Accept-Encoding")
	tag := `"` + all.version + `"`
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		content, tag = all.gzip[name], `"`+all.version+`-gzip"`
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("Etag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(content) // the browser may have left
}

// types are the assets' by their extension: those of the system may lack one.
var types = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}
