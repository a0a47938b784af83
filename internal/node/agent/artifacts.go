package agent

import (
	"net/netip"
	"time"

	"github.com/drover-project/drover/internal/netguard"
	"github.com/drover-project/drover/internal/node/artifact"
	"github.com/drover-project/drover/internal/node/gitfetch"
)

// Artifacts says what the node fetches for tasks.
type Artifacts struct {
	Timeouts artifact.Timeouts // default 30m each
	// Size and Unpacked bound one artifact as it comes, and what it unpacks to. Bytes; default 10 GiB.
	Size, Unpacked int64
	// Files bounds the files, folders and links of one archive, repository or folder. Default 200,000: each costs an inode of the
	// disk that all share.
	Files int
	// Allow are networks that artifacts may come from although they are special: loopback and so on.
	Allow []netip.Prefix
	// Read are paths that git may read beside those of the machine's system.
	Read []string
	// Cloud is who the node is in its cloud, for buckets. Default: nobody.
	Cloud artifact.Cloud
}

func (a *Artifacts) fill() {
	for _, t := range []*time.Duration{&a.Timeouts.HTTP, &a.Timeouts.Git, &a.Timeouts.S3, &a.Timeouts.GCS} {
		fill(t, 30*time.Minute)
	}
	fill(&a.Size, 10<<30)
	fill(&a.Unpacked, 10<<30)
	fill(&a.Files, 200_000)
}

// fetcher reaches the Internet and private networks. It keeps no connections: downloads are rare.
func (a *Agent) fetcher() *artifact.Fetcher {
	cfg := a.cfg.Artifacts
	guard := &netguard.Guard{
		What: "the artifact's address", Key: "client { artifact { allow = [...] } } of the node's agent", Private: true, Allow: cfg.Allow,
	}
	return artifact.New(artifact.Config{
		HTTP: guard.Client(0), Git: gitfetch.New(gitfetch.Config{Guard: guard, Read: cfg.Read, Clock: a.clock, Log: a.log}),
		Size: cfg.Size, Unpacked: cfg.Unpacked, Files: cfg.Files, Timeouts: cfg.Timeouts, Cloud: cfg.Cloud, Clock: a.clock,
	})
}
