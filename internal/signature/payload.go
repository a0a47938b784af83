package signature

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/drover-project/drover"
)

const (
	// kind is what a payload says that it is.
	kind = "cosign container image signature"
	// maxDepth bounds how deep a payload's values lie in each other.
	maxDepth = 32
)

// Covers reports whether a payload, whose signature is good, is about the image of the digest in the repository; nil if so. What it says
// must have one meaning only: a key that stands twice in an object, or in another case, is refused. Errors: Forbidden.
func Covers(payload []byte, repository name.Repository, digest string) error {
	if err := unambiguous(payload); err != nil {
		return drover.Errorf(drover.Forbidden, "its payload is no simple signing document: %w", err)
	}
	critical, err := member(payload, "critical")
	if err != nil {
		return drover.Errorf(drover.Forbidden, "its payload: %w", err)
	}
	var said [3]string
	for i, path := range [][]string{{"type"}, {"image", "docker-manifest-digest"}, {"identity", "docker-reference"}} {
		if said[i], err = text(critical, path...); err != nil {
			return drover.Errorf(drover.Forbidden, "its payload: critical: %w", err)
		}
	}
	if said[0] != kind {
		return drover.Errorf(drover.Forbidden, "its payload is a %q, not a %q", said[0], kind)
	}
	if said[1] != digest {
		return drover.Errorf(drover.Forbidden, "it is of another image, %q", said[1])
	}
	signed, err := name.ParseReference(said[2])
	if err != nil || signed.Context().Name() != repository.Name() {
		return drover.Errorf(drover.Forbidden, "it is of an image in another repository, %q, not %s", said[2], repository.Name())
	}
	return nil
}

// member returns a value of an object by its exact name.
func member(object json.RawMessage, key string) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil || all == nil {
		return nil, errors.New("it is no object")
	}
	value, ok := all[key]
	if !ok {
		return nil, fmt.Errorf("%s is missing", key)
	}
	return value, nil
}

// text returns the text at the path.
func text(object json.RawMessage, path ...string) (s string, err error) {
	for _, key := range path {
		if object, err = member(object, key); err != nil {
			return "", err
		}
	}
	if json.Unmarshal(object, &s) != nil || s == "" {
		return "", fmt.Errorf("%s is no text", path[len(path)-1])
	}
	return s, nil
}

// unambiguous reports whether the text is one JSON value in which no object has a key twice.
func unambiguous(payload []byte) error {
	d := json.NewDecoder(bytes.NewReader(payload))
	if err := single(d, 0); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows it")
	}
	return nil
}

// single reads one value.
func single(d *json.Decoder, depth int) error {
	if depth > maxDepth {
		return errors.New("its values lie too deep in each other")
	}
	token, err := d.Token()
	if err != nil {
		return fmt.Errorf("reading its JSON: %w", err)
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return fmt.Errorf("reading its JSON: %w", err)
			}
			if k, _ := key.(string); seen[k] {
				return fmt.Errorf("the key %q stands twice in an object", k)
			} else {
				seen[k] = true
			}
		}
		if err := single(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token() // the end of it
	return err
}
