package environment

import (
	"errors"
	"fmt"
	"strings"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/lazyregexp"
)

// The grammar of distribution's reference: [domain[:port]/]path[:tag][@digest].
var (
	imageDomain = lazyregexp.New(
		`^(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?$`,
	)
	imagePath   = lazyregexp.New(`^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$`)
	imageTag    = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	imageDigest = lazyregexp.New(`^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,}$`)
)

// IsPath reports whether the image is a layout or archive on the node's disk.
func IsPath(image string) bool {
	return strings.HasPrefix(image, "/") || strings.HasPrefix(image, "./")
}

// validateImage checks the image as far as its driver and its form tell; whether it exists only a node can say.
// Drivers without images accept "host" and an empty text.
func validateImage(env execution.Environment) error {
	switch {
	case env.Driver == "raw_exec" || env.Driver == "mock_driver":
		if env.Image != "" && env.Image != HostImage {
			return fmt.Errorf("driver %s has no images: want %q", env.Driver, HostImage)
		}
		return nil
	case env.Image == "":
		return errors.New("missing: want an image reference, a path, or \"host\"")
	case env.Image == HostImage && hasContainers(env):
		return fmt.Errorf("\"host\" is not an image that %s has", env.Driver)
	case env.Image == HostImage:
		return nil
	case IsPath(env.Image):
		if strings.ContainsAny(env.Image, "\x00\n") {
			return fmt.Errorf("path %q has a control character", env.Image)
		}
		return nil
	}
	return validateReference(env.Image)
}

// validateReference checks an image reference. The first part of a name is a domain only if it has a dot, a port or
// a capital letter, or is "localhost". This is Docker's rule too: otherwise "library/gcc" would name a host.
func validateReference(ref string) error {
	if len(ref) > 4096 {
		return errors.New("longer than 4096 bytes")
	}
	name, digest, hasDigest := strings.Cut(ref, "@")
	if hasDigest && !imageDigest().MatchString(digest) {
		return fmt.Errorf("%q: bad digest %q", ref, digest)
	}
	slash := strings.LastIndexByte(name, '/')
	if colon := strings.LastIndexByte(name, ':'); colon > slash {
		if tag := name[colon+1:]; !imageTag().MatchString(tag) {
			return fmt.Errorf("%q: bad tag %q", ref, tag)
		}
		name = name[:colon]
	}
	if domain, rest, ok := strings.Cut(name, "/"); ok && imageDomain().MatchString(domain) &&
		(strings.ContainsAny(domain, ".:[") || domain == "localhost" || domain != strings.ToLower(domain)) {
		name = rest
	}
	if !imagePath().MatchString(name) {
		return fmt.Errorf("%q is not an image reference ([domain/]name[:tag][@digest], the name in lower case)", ref)
	}
	return nil
}
