package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/httpapi/web/html"
)

//go:embed *.css *.js *.svg vendor
var files embed.FS

// packed are the assets as they are sent, by name.
type packed struct {
	version string            // of all of them
	plain   map[string][]byte // of those that are written here
	gzip    map[string][]byte
}

// assets packs them once. Their version is part of their addresses, so that browsers may keep them for ever.
var assets = sync.OnceValue(func() packed {
	p := packed{plain: map[string][]byte{}, gzip: map[string][]byte{}}
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // they are part of the binary
	}
	sum := sha256.New()
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		content, err := files.ReadFile(e.Name())
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
	p.vendored(sum)
	p.version = hex.EncodeToString(sum.Sum(nil))[:12]
	return p
})

// vendored adds what others wrote, which lies here compressed and stays so: few look at it.
func (p *packed) vendored(sum io.Writer) {
	entries, err := files.ReadDir(vendorDir)
	if err != nil {
		panic(err) // they are part of the binary
	}
	for _, e := range entries {
		name, compressed := strings.CutSuffix(e.Name(), ".gz")
		if !compressed {
			continue
		}
		content, err := files.ReadFile(path.Join(vendorDir, e.Name()))
		if err != nil {
			panic(err) // as above
		}
		_, _ = sum.Write(content)
		p.gzip[name] = content
	}
}

const vendorDir = "vendor"

// unpack is an asset as its author wrote it.
func unpack(content []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// Plain returns the assets that are written here, by name.
func Plain() map[string][]byte { return assets().plain }

// Address is the address of one by its name.
func Address(name string) html.URL { return html.Path("ui", "static", assets().version, name) }

// Serve sends an asset, compressed where the browser takes that. One of another version is answered, but not kept: an agent that was
// just replaced may have sent the page.
func Serve(w http.ResponseWriter, r *http.Request) {
	name, all := r.PathValue("name"), assets()
	content, known := all.gzip[name]
	Protect(w.Header())
	if !known {
		http.Error(w, "There is no such file", http.StatusNotFound)
		return
	}
	if r.PathValue("version") == all.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	w.Header().Set("Vary", "Accept-Encoding")
	tag := `"` + all.version + `"`
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		tag = `"` + all.version + `-gzip"`
		w.Header().Set("Content-Encoding", "gzip")
	} else if plain, kept := all.plain[name]; kept {
		content = plain
	} else if content, _ = unpack(content); content == nil { // it was tried by a test
		http.Error(w, "There is no such file", http.StatusInternalServerError)
		return
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
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".mjs": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}
