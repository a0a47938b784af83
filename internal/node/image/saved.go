package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/drover-project/drover"
)

// Saved is one image in an archive in the format of docker save. The archive comes from a user and is not trusted.
type Saved struct {
	ID     string // as docker has it: the digest of its configuration
	in     *packed
	config []byte
	layers []string
}

// savedManifest is what such an archive says of an image.
type savedManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// OpenSaved finds the image of this name in an archive. The file is the image's from then on, also if that fails; a
// compressed one is written to a file without a name in scratch first. Errors: NotFound, with the names that it has;
// Invalid.
func OpenSaved(f *os.File, scratch, ref string) (_ *Saved, err error) {
	in, err := openPacked(f, scratch, defaultBytes)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.Close())
		}
	}()
	text, err := document(in, "manifest.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, drover.Errorf(drover.Invalid, "it is no archive of docker's: it has no manifest.json")
	}
	if err != nil {
		return nil, err
	}
	var list []savedManifest
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, drover.Errorf(drover.Invalid, "reading its manifest.json: %w", err)
	}
	var has []string
	for _, m := range list {
		for _, tag := range m.RepoTags {
			if fullName(tag) == fullName(ref) {
				return openSaved(in, m)
			}
		}
		has = append(has, m.RepoTags...)
	}
	return nil, drover.Errorf(drover.NotFound, "it does not hold %s; it has %s", ref, strings.Join(has, ", "))
}

// openSaved reads the configuration of one image in the archive and computes its id. The layers are not touched.
func openSaved(in *packed, m savedManifest) (*Saved, error) {
	config, err := document(in, m.Config)
	if err != nil {
		return nil, fmt.Errorf("reading its configuration: %w", err)
	}
	sum, _, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, err
	}
	return &Saved{ID: sum.String(), in: in, config: config, layers: m.Layers}, nil
}

// fullName is how all ways to write a reference are compared.
func fullName(ref string) string {
	r, err := name.ParseReference(ref)
	if err != nil {
		return ref
	}
	return r.Name()
}

// Write writes an archive that holds this image alone, by another name.
func (s *Saved) Write(w io.Writer, tag string) error {
	out := tar.NewWriter(w)
	m := savedManifest{Config: "config.json", RepoTags: []string{tag}}
	written := map[string]string{}
	for _, layer := range s.layers {
		if written[layer] == "" {
			written[layer] = fmt.Sprintf("layer%d.tar", len(written))
			if err := s.copy(out, written[layer], layer); err != nil {
				return fmt.Errorf("its layer %s: %w", layer, err)
			}
		}
		m.Layers = append(m.Layers, written[layer])
	}
	manifest, err := json.Marshal([]savedManifest{m})
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{m.Config: s.config, "manifest.json": manifest} {
		if err := out.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return out.Close()
}

// copy writes the content of one layer under a new name. Layers are not decompressed or checked: docker does that when
// it loads them.
func (s *Saved) copy(out *tar.Writer, name, layer string) error {
	r, size, err := s.in.open(layer)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := out.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: size}); err != nil {
		return err
	}
	_, err = io.Copy(out, r)
	return err
}

// Close closes the archive.
func (s *Saved) Close() error { return s.in.Close() }
