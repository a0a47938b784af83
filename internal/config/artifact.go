package config

import (
	"cmp"
	"errors"
	"math"
	"net/netip"
	"time"

	"github.com/drover-project/drover/internal/netguard"
	"github.com/drover-project/drover/internal/optional"
)

// maxArtifact is the largest bound of an artifact that can be written; more than that is no bound.
const maxArtifact = 1e15 - 1

// Artifacts are the bounds of what the node fetches for tasks. What is 0 is the node's own.
type Artifacts struct {
	Allow        []netip.Prefix
	Timeout      time.Duration
	Size         int64 // as it comes; bytes
	Unpacked     int64 // bytes
	UnpackedMany int   // files, folders and links
}

// Artifacts reads the block. Errors: those that Validate tells.
func (c *Client) Artifacts() (Artifacts, error) {
	out, p := c.artifacts()
	return out, errors.Join(p.errs...)
}

func (c *Client) artifacts() (Artifacts, *problems) {
	p, block := &problems{}, cmp.Or(c.Artifact, &Artifact{})
	out := Artifacts{Timeout: Duration(block.HTTPReadTimeout, 0), UnpackedMany: optional.Value(block.UnpackedFiles)}
	var err error
	out.Allow, err = netguard.Networks(block.Allow)
	p.check(err == nil, "client.artifact.allow", "%v", err)
	out.Size, err = bytesOf(block.HTTPMaxSize, 0, maxArtifact)
	p.check(err == nil, "client.artifact.http_max_size", "%v", err)
	out.Unpacked, err = bytesOf(block.UnpackedSize, 0, maxArtifact)
	p.check(err == nil, "client.artifact.decompression_size_limit", "%v", err)
	p.check(out.UnpackedMany >= 0 && out.UnpackedMany <= math.MaxInt32, "client.artifact.decompression_file_count_limit",
		"must be from 0 to %d, got %d", math.MaxInt32, out.UnpackedMany)
	// Of these keys 0 is no limit, as with Nomad.
	if block.HTTPReadTimeout != "" && out.Timeout == 0 {
		out.Timeout = math.MaxInt64
	}
	if block.HTTPMaxSize != "" && out.Size == 0 {
		out.Size = maxArtifact
	}
	if block.UnpackedSize != "" && out.Unpacked == 0 {
		out.Unpacked = maxArtifact
	}
	if block.UnpackedFiles != nil && out.UnpackedMany == 0 {
		out.UnpackedMany = math.MaxInt32
	}
	return out, p
}
