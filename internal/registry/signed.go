package registry

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/signature"
)

// Signed is an image that a key vouches for.
type Signed struct {
	Ref string // its repository with the digest that was signed: whoever pulls by it gets what was looked at, or nothing
	Key string // id of the key
}

const (
	// maxSignatures bounds how many signatures of an image are looked at.
	maxSignatures = 64
	// maxPayload bounds what one is of, in bytes.
	maxPayload = 64 << 10
	// signatureKey is where a layer of a signature's manifest has the signature, in base64.
	signatureKey = "dev.cosignproject.cosign/signature"
	// payloadType is the layer's.
	payloadType = "application/vnd.dev.cosign.simplesigning.v1+json"
)

// Verify finds out what a name means, and that one of the keys signed it. What is looked at has one digest from then on: of a name with a
// tag it is the one that the first answer had. The image for this machine of an index may be signed instead of the index. Unless fresh is
// set, what was found for a name before, and for one of the keys, is not asked for again. Errors: Forbidden if none of the keys signed it,
// with why; Invalid for what is no name; and those of Error.
func (c *Client) Verify(ctx context.Context, ref string, a Account, keys []signature.Key, fresh bool) (Signed, error) {
	if !fresh {
		if s, ok := c.remembered(ref, keys); ok {
			return s, nil
		}
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return Signed{}, drover.Errorf(drover.Invalid, "image %q: where signatures are required it must be a name in a registry, "+
			"such as docker.io/library/python:3: %w", ref, err)
	}
	ctx, cancel := c.cfg.Clock.WithTimeout(ctx, patience)
	defer cancel()
	options := c.options(ctx, a)
	top, err := remote.Get(parsed, options...)
	if err != nil {
		return Signed{}, Error(ref, err)
	}
	repository := parsed.Context()
	key, err := signer(repository, top.Digest, keys, options)
	digest := top.Digest
	if drover.CodeOf(err) == drover.Forbidden && top.MediaType.IsIndex() {
		img, cerr := top.Image()
		if cerr != nil {
			return Signed{}, Error(ref, cerr)
		}
		child, cerr := img.Digest()
		if cerr != nil {
			return Signed{}, Error(ref, cerr)
		}
		if own, cerr := signer(repository, child, keys, options); drover.CodeOf(cerr) != drover.Forbidden {
			key, digest, err = own, child, cerr
		}
	}
	if err != nil {
		if drover.CodeOf(err) == drover.Forbidden {
			err = drover.Errorf(drover.Forbidden, "image %s: it must be signed by one of the keys %s, and is not: %w", ref,
				strings.Join(signature.IDs(keys), ", "), err)
			return Signed{}, err
		}
		return Signed{}, Error(ref, err)
	}
	s := Signed{Ref: repository.Name() + "@" + digest.String(), Key: key}
	c.remember(ref, s)
	return s, nil
}

// signer returns which of the keys signed the digest. Errors: Forbidden, with why no signature counts; others are the registry's.
func signer(repository name.Repository, digest v1.Hash, keys []signature.Key, options []remote.Option) (string, error) {
	tag := repository.Tag(digest.Algorithm + "-" + digest.Hex + ".sig")
	img, err := remote.Image(tag, options...)
	var answer *transport.Error
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
		return "", drover.Errorf(drover.Forbidden, "there is no %s beside it", tag.TagStr())
	}
	if err != nil {
		return "", err
	}
	manifest, err := img.Manifest()
	if err != nil {
		return "", drover.Errorf(drover.Forbidden, "%s is no manifest of signatures: %w", tag.TagStr(), err)
	}
	if n := len(manifest.Layers); n > maxSignatures {
		return "", drover.Errorf(drover.Forbidden, "%s has %d signatures, at most %d are looked at", tag.TagStr(), n, maxSignatures)
	}
	why := drover.Errorf(drover.Forbidden, "none of the %d signatures in %s is of these keys", len(manifest.Layers), tag.TagStr())
	for _, l := range manifest.Layers {
		key := signedBy(l, keys)
		if key == "" {
			continue // others may sign, too
		}
		payload, err := payloadOf(repository, l, options)
		if err != nil {
			return "", err
		}
		if why = signature.Covers(payload, repository, digest.String()); why == nil {
			return key, nil
		}
		why = drover.Errorf(drover.Forbidden, "a signature of key %s does not count: %w", key, why)
	}
	return "", why
}

// signedBy returns which of the keys signed the layer; "" if none did. The signature is over the payload's SHA-256, which is the layer's
// digest.
func signedBy(l v1.Descriptor, keys []signature.Key) string {
	sum, err := hex.DecodeString(l.Digest.Hex)
	if err != nil || l.Digest.Algorithm != "sha256" || string(l.MediaType) != payloadType {
		return ""
	}
	made, err := base64.StdEncoding.DecodeString(l.Annotations[signatureKey])
	if err != nil {
		return ""
	}
	return signature.By(keys, sum, made)
}

// payloadOf reads a layer, from its repository and nowhere else, and compares it with its digest. Errors: Forbidden for one that is too
// large; the registry's, also for other bytes.
func payloadOf(repository name.Repository, l v1.Descriptor, options []remote.Option) ([]byte, error) {
	if l.Size > maxPayload {
		return nil, drover.Errorf(drover.Forbidden, "the payload of a signature has %d bytes, at most %d are read", l.Size, maxPayload)
	}
	layer, err := remote.Layer(repository.Digest(l.Digest.String()), options...)
	if err != nil {
		return nil, err
	}
	stream, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, maxPayload+1))
	if err != nil {
		return nil, fmt.Errorf("reading the payload of a signature: %w", err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != l.Digest.Hex {
		return nil, drover.Errorf(drover.Unavailable, "the registry answers with other bytes than the payload of a signature has")
	}
	return text, nil
}
