package registrytest

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Signer has a key, which openssl made.
type Signer struct {
	PEM  string // the public half
	file string // the private half
}

// NewSigner makes a key of the curve; "" = prime256v1, which is P-256.
func NewSigner(t *testing.T, curve string) *Signer {
	t.Helper()
	if curve == "" {
		curve = "prime256v1"
	}
	s := &Signer{file: filepath.Join(t.TempDir(), "key.pem")}
	openssl(t, "ecparam", "-name", curve, "-genkey", "-noout", "-out", s.file)
	s.PEM = openssl(t, "ec", "-in", s.file, "-pubout")
	return s
}

func openssl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("openssl", args...).Output()
	if err != nil {
		t.Fatalf("openssl %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// Sign signs bytes: ECDSA over their SHA-256, in base64.
func (s *Signer) Sign(t *testing.T, payload []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "payload")
	must(t, os.WriteFile(file, payload, 0o600))
	return base64.StdEncoding.EncodeToString([]byte(openssl(t, "dgst", "-sha256", "-sign", s.file, file)))
}

// Payload is what cosign signs of an image.
func Payload(repository, digest string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"},"optional":null}`, repository, digest)
}

// Layer is a signed payload as it lies in a signature's manifest.
type Layer struct {
	Payload   []byte
	Signature string
	Annotate  map[string]string // further annotations
	URLs      []string
}

// Attach stores signatures beside the image of the digest, as cosign does: as the image REPOSITORY:sha256-DIGEST.sig.
func (r *Registry) Attach(t *testing.T, repository string, digest v1.Hash, layers ...Layer) {
	t.Helper()
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	for _, l := range layers {
		annotations := map[string]string{"dev.cosignproject.cosign/signature": l.Signature}
		for k, v := range l.Annotate {
			annotations[k] = v
		}
		var err error
		img, err = mutate.Append(img, mutate.Addendum{
			Layer:       static.NewLayer(l.Payload, "application/vnd.dev.cosign.simplesigning.v1+json"),
			Annotations: annotations, URLs: l.URLs,
		})
		must(t, err)
	}
	tag, err := name.NewTag(r.Host + "/" + repository + ":" + digest.Algorithm + "-" + digest.Hex + ".sig")
	must(t, err)
	must(t, remote.Write(tag, img))
}

// Sign stores what `cosign sign --key` makes for the image of the digest in the repository.
func (r *Registry) Sign(t *testing.T, s *Signer, repository string, digest v1.Hash) {
	t.Helper()
	payload := Payload(r.Host+"/"+repository, digest.String())
	r.Attach(t, repository, digest, Layer{Payload: payload, Signature: s.Sign(t, payload)})
}
