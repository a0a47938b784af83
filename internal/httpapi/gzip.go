package httpapi

import (
	"compress/gzip"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// compressing returns what wraps the routes whose answers are compressed, from 2 KiB on, for clients that accept gzip. None of
// them has an ETag: a compressed answer would need another than the plain one.
func compressing() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(2<<10), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false),
		gzhttp.ContentTypeFilter(compressible))
	if err != nil {
		panic(err) // cannot be: the options are constants
	}
	return wrap
}

func compressible(contentType string) bool {
	return !strings.HasPrefix(contentType, "application/octet-stream") && !strings.HasPrefix(contentType, "application/zip") &&
		!strings.HasPrefix(contentType, "image/")
}
