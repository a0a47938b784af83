package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/drover-project/drover"
)

// isPath reports whether the reference is something on disk.
func isPath(ref string) bool {
	return strings.HasPrefix(ref, "/") || strings.HasPrefix(ref, "./") || strings.HasPrefix(ref, "../")
}

// opened is an image that can be read.
type opened struct {
	digest string
	config *v1.ConfigFile
	layers []content // the lowest first
	remote bool      // what fails may pass
	source string    // as record has it; "" = as the reference says
	close  func() error
}

// content opens a layer, compressed or not.
type content func() (io.ReadCloser, error)

// open finds the image.
func (s *Store) open(ctx context.Context, r Request) (*opened, error) {
	if !isPath(r.Ref) {
		return s.openRemote(ctx, r)
	}
	info, err := os.Stat(r.Ref)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, drover.Errorf(drover.NotFound, "image %s: there is no layout and no archive of that name on this machine", r.Ref)
	}
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "image %s: %w", r.Ref, err)
	}
	img, err := s.openPath(r.Ref, info)
	if err != nil {
		return nil, pathError(r.Ref, err)
	}
	return img, nil
}

// pathError is what is wrong with an image on disk: it stays so, unless it is the disk.
func pathError(ref string, err error) error {
	code := drover.CodeOf(err)
	switch {
	case diskFull(err):
		code = drover.Unavailable
	case code == drover.Internal:
		code = drover.Invalid
	}
	return drover.Errorf(code, "image %s: %w", ref, err)
}

// openPath opens what lies at a path: a directory as OCI layout, a regular file as archive. All else is Invalid, as
// opening a pipe or a device could block or have effects.
func (s *Store) openPath(path string, info os.FileInfo) (*opened, error) {
	var in files
	switch {
	case info.IsDir():
		root, err := os.OpenRoot(path)
		if err != nil {
			return nil, err
		}
		in = folder{root}
	case info.Mode().IsRegular():
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		p, err := openPacked(f, s.opts.Dir, s.limits().Bytes)
		if err != nil {
			return nil, err
		}
		in = p
	default:
		return nil, drover.Errorf(drover.Invalid, "it is neither a folder nor a file")
	}
	img, err := openFiles(in)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	img.close = in.Close
	return img, nil
}

// openFiles reads the image of a docker archive or a layout. What is both, as newer dockers write it, is read as the first:
// there the layers' names are given.
func openFiles(in files) (*opened, error) {
	text, err := document(in, "manifest.json")
	if err == nil {
		return openDocker(in, text)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	text, err = document(in, "index.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, drover.Errorf(
			drover.Invalid, "it is no OCI layout and no archive of docker or OCI: it has neither index.json nor manifest.json",
		)
	}
	if err != nil {
		return nil, err
	}
	return openIndex(in, text, 0)
}

// openDocker reads what docker save writes.
func openDocker(in files, manifest []byte) (*opened, error) {
	var list []savedManifest
	if err := json.Unmarshal(manifest, &list); err != nil {
		return nil, fmt.Errorf("reading its manifest.json: %w", err)
	}
	if len(list) != 1 {
		return nil, drover.Errorf(drover.Invalid, "it holds %d images: save one", len(list))
	}
	config, err := document(in, list[0].Config)
	if err != nil {
		return nil, fmt.Errorf("reading its configuration: %w", err)
	}
	img := &opened{}
	if err := img.setConfig(config); err != nil {
		return nil, err
	}
	sum, _, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, err
	}
	img.digest = sum.String() // as docker has it: an archive has no manifest of its own
	for _, name := range list[0].Layers {
		img.layers = append(img.layers, func() (io.ReadCloser, error) { r, _, err := in.open(name); return r, err })
	}
	return img, nil
}

// setConfig parses the image's configuration, which names the layers' digests and the default command.
func (o *opened) setConfig(text []byte) (err error) {
	if o.config, err = v1.ParseConfigFile(bytes.NewReader(text)); err != nil {
		return fmt.Errorf("reading its configuration: %w", err)
	}
	return nil
}

// openIndex takes the image for this machine, or the first one of no machine, out of a layout.
func openIndex(in files, index []byte, depth int) (*opened, error) {
	manifest, err := v1.ParseIndexManifest(bytes.NewReader(index))
	if err != nil {
		return nil, fmt.Errorf("reading its index: %w", err)
	}
	const deepest = 3
	if depth > deepest {
		return nil, drover.Errorf(drover.Invalid, "its indexes are nested too deeply")
	}
	for _, m := range manifest.Manifests {
		if !m.MediaType.IsImage() && !m.MediaType.IsIndex() || m.Platform != nil &&
			(m.Platform.OS != "linux" || m.Platform.Architecture != runtime.GOARCH) {
			continue
		}
		text, err := blob(in, m.Digest)
		if err != nil {
			return nil, err
		}
		if m.MediaType.IsIndex() {
			return openIndex(in, text, depth+1)
		}
		return openManifest(in, text, m.Digest)
	}
	return nil, drover.Errorf(drover.NotFound, "there is no image for linux/%s in it", runtime.GOARCH)
}

// openManifest reads one image of a layout. Its digest is the manifest's, as a registry would name the image. The
// layers' contents are not compared here but when they are unpacked.
func openManifest(in files, text []byte, digest v1.Hash) (*opened, error) {
	manifest, err := v1.ParseManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading its manifest: %w", err)
	}
	config, err := blob(in, manifest.Config.Digest)
	if err != nil {
		return nil, err
	}
	img := &opened{digest: digest.String()}
	if err := img.setConfig(config); err != nil {
		return nil, err
	}
	for _, l := range manifest.Layers {
		img.layers = append(img.layers, func() (io.ReadCloser, error) { r, _, err := in.open(blobName(l.Digest)); return r, err })
	}
	return img, nil
}

// blobName is where a layout keeps the content with this digest, as the OCI image layout specification says.
func blobName(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// blob reads a document whose content is known.
func blob(in files, want v1.Hash) ([]byte, error) {
	text, err := document(in, blobName(want))
	if err != nil {
		return nil, err
	}
	got, _, err := v1.SHA256(bytes.NewReader(text))
	if err == nil && got != want {
		err = drover.Errorf(drover.Invalid, "its %s has digest %s: the image is damaged or forged", blobName(want), got)
	}
	return text, err
}
