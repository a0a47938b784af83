package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"drover"
)

// isPath reports whether the reference is something on disk.
func isPath(ref string) bool {
	return strings.HasPrefix(ref, "/") || strings.HasPrefix(ref, "./") || strings.HasPrefix(ref, "../")
}

// open finds the image. done releases what reading it needs.
func (s *Store) open(ctx context.Context, r Request) (img v1.Image, done func(), err error) {
	if !isPath(r.Ref) {
		img, err = s.openRemote(ctx, r)
		return img, func() {}, err
	}
	info, err := os.Stat(r.Ref)
	if err != nil {
		return nil, nil, drover.Errorf(drover.NotFound, "image %s: no such layout or archive: %w", r.Ref, err)
	}
	if info.IsDir() {
		img, err = openLayout(r.Ref)
		return img, func() {}, err
	}
	return s.openArchive(r.Ref)
}

func (s *Store) openRemote(ctx context.Context, r Request) (v1.Image, error) {
	ref, err := name.ParseReference(r.Ref)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, `image %q is no reference (like docker.io/library/python:3), no path, and not "host": %w`, r.Ref, err)
	}
	options := []remote.Option{
		remote.WithContext(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}),
	}
	if r.Username != "" {
		options = append(options, remote.WithAuth(&authn.Basic{Username: r.Username, Password: r.Password}))
	} else {
		options = append(options, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	}
	if s.opts.Transport != nil {
		options = append(options, remote.WithTransport(s.opts.Transport))
	}
	img, err := remote.Image(ref, options...)
	if err != nil {
		return nil, remoteError(r.Ref, err)
	}
	return img, nil
}

// remoteError says what went wrong with a registry and whether trying again helps.
func remoteError(ref string, err error) error {
	if ours := (*drover.Error)(nil); errors.As(err, &ours) {
		return err
	}
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return drover.Errorf(drover.Unavailable, "image %s: reaching the registry: %w", ref, err)
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return drover.Errorf(drover.Forbidden, "image %s: the registry refuses access (wrong or missing login, or no such image): %w", ref, err)
	case http.StatusNotFound:
		return drover.Errorf(drover.NotFound, "image %s: the registry does not have it: %w", ref, err)
	}
	return drover.Errorf(drover.Unavailable, "image %s: %w", ref, err)
}

// openLayout takes the image for this machine out of an OCI layout.
func openLayout(dir string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "image %s: a folder must be an OCI layout: %w", dir, err)
	}
	img, err := fromIndex(index, 0)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "image %s: %w", dir, err)
	}
	return img, nil
}

// fromIndex picks the manifest for this machine, or the first.
func fromIndex(index v1.ImageIndex, depth int) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if depth > 3 {
		return nil, errors.New("the indexes are nested too deeply")
	}
	var chosen *v1.Descriptor
	for i, m := range manifest.Manifests {
		if !m.MediaType.IsImage() && !m.MediaType.IsIndex() {
			continue
		}
		fits := m.Platform == nil || (m.Platform.OS == "linux" && m.Platform.Architecture == runtime.GOARCH)
		if fits && chosen == nil {
			chosen = &manifest.Manifests[i]
		}
	}
	if chosen == nil {
		return nil, fmt.Errorf("there is no image for linux/%s in it", runtime.GOARCH) //nolint:err113 // wrapped with a code
	}
	if chosen.MediaType.IsIndex() {
		inner, err := index.ImageIndex(chosen.Digest)
		if err != nil {
			return nil, err
		}
		return fromIndex(inner, depth+1)
	}
	return index.Image(chosen.Digest)
}

// openArchive reads a docker archive in place; an OCI archive is a packed layout, and is unpacked first.
func (s *Store) openArchive(path string) (v1.Image, func(), error) {
	oci, err := isOCIArchive(path)
	if err != nil {
		return nil, nil, drover.Errorf(drover.Invalid, "image %s: not a tar archive: %w", path, err)
	}
	if !oci {
		img, err := tarball.ImageFromPath(path, nil)
		if err != nil {
			return nil, nil, drover.Errorf(drover.Invalid, "image %s: not a docker archive with one image: %w", path, err)
		}
		return img, func() {}, nil
	}
	tmp, err := os.MkdirTemp(s.opts.Dir, ".archive-*")
	if err != nil {
		return nil, nil, err
	}
	done := func() { _ = os.RemoveAll(tmp) }
	if err := s.unpackFile(path, tmp); err != nil {
		done()
		return nil, nil, drover.Errorf(drover.Invalid, "image %s: unpacking the archive: %w", path, err)
	}
	img, err := openLayout(tmp)
	if err != nil {
		done()
		return nil, nil, err
	}
	return img, done, nil
}

func isOCIArchive(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	docker, oci := false, false
	for r, first := tar.NewReader(f), true; ; first = false {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return oci && !docker, nil
		}
		if err != nil {
			if first {
				return false, err
			}
			return false, fmt.Errorf("the archive is cut off: %w", err)
		}
		switch filepath.Clean(h.Name) {
		case "manifest.json":
			docker = true
		case "oci-layout":
			oci = true
		}
	}
}

func (s *Store) unpackFile(path, dir string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unpack(f, dir, unpackOptions{limits: s.limits(), plain: true})
}
