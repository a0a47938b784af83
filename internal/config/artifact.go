package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/config/size"
	"github.com/drover-project/drover/internal/netguard"
	"github.com/drover-project/drover/internal/optional"
)

// maxArtifact is the largest bound of an artifact that can be written; more than that is no bound.
const maxArtifact = 1e15 - 1

// Artifacts are the bounds of what the node fetches for tasks. What is 0 is the node's own.
type Artifacts struct {
	Allow        []netip.Prefix
	HTTPTimeout  time.Duration
	GitTimeout   time.Duration
	S3Timeout    time.Duration
	GCSTimeout   time.Duration
	Size         int64 // as it comes; bytes
	Unpacked     int64 // bytes
	UnpackedMany int   // files, folders and links
	Read         []string
	Cloud        bool // buckets are asked as the node
	Buckets      []string
}

// Artifacts reads the block. Errors: those that Validate tells.
func (c *Client) Artifacts() (Artifacts, error) {
	out, p := c.artifacts()
	return out, errors.Join(p.errs...)
}

func (c *Client) artifacts() (Artifacts, *problems) {
	p, block := &problems{}, cmp.Or(c.Artifact, &Artifact{})
	out := Artifacts{
		HTTPTimeout: unbounded(block.HTTPReadTimeout), GitTimeout: unbounded(block.GitTimeout), S3Timeout: unbounded(block.S3Timeout),
		GCSTimeout: unbounded(block.GCSTimeout), UnpackedMany: optional.Value(block.UnpackedFiles), Cloud: optional.Value(block.CloudCredentials),
		Buckets: block.CloudBuckets,
	}
	p.check(out.Cloud || len(out.Buckets) == 0, "client.artifact.cloud_buckets",
		"buckets are asked as the node only with cloud_credentials = true")
	p.check(out.Buckets == nil || len(out.Buckets) > 0, "client.artifact.cloud_buckets",
		"names no bucket: leave it out for all of them, or cloud_credentials for none")
	for _, name := range out.Buckets {
		_, err := path.Match(name, "")
		p.check(err == nil && name != "", "client.artifact.cloud_buckets", "%q is no pattern of a bucket's name", name)
	}
	var err error
	for _, text := range block.ExtraPaths {
		at, err := extraPath(text)
		p.check(err == nil, "client.artifact.filesystem_isolation_extra_paths", "%v", err)
		out.Read = append(out.Read, at)
	}
	out.Allow, err = netguard.Networks(block.Allow)
	p.check(err == nil, "client.artifact.allow", "%v", err)
	out.Size, err = size.Bytes(block.HTTPMaxSize, 0, maxArtifact)
	p.check(err == nil, "client.artifact.http_max_size", "%v", err)
	out.Unpacked, err = size.Bytes(block.UnpackedSize, 0, maxArtifact)
	p.check(err == nil, "client.artifact.decompression_size_limit", "%v", err)
	p.check(out.UnpackedMany >= 0 && out.UnpackedMany <= math.MaxInt32, "client.artifact.decompression_file_count_limit",
		"must be from 0 to %d, got %d", math.MaxInt32, out.UnpackedMany)
	// Of these keys 0 is no limit, as with Nomad.
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

// unbounded reads a duration of which 0 is no bound; what is not given is the node's own, 0.
func unbounded(text string) time.Duration {
	if d := Duration(text, 0); d != 0 || text == "" {
		return d
	}
	return math.MaxInt64
}

// extraPath reads [KIND:MODES:]PATH, as Nomad writes it. git writes nowhere but to its folder, so modes are r and x. Errors: those of
// the form.
func extraPath(text string) (string, error) {
	path := text
	if kind, rest, ok := strings.Cut(text, ":"); ok {
		modes, at, _ := strings.Cut(rest, ":")
		if kind != "f" && kind != "d" || modes == "" || strings.Trim(modes, "rx") != "" {
			return "", fmt.Errorf("%q: want [d|f]:[r|rx]:PATH; git does not write there", text)
		}
		path = at
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%q: want an absolute path", text)
	}
	return path, nil
}
