package cluster

import (
	"strings"
	"time"

	"github.com/drover-project/drover/secrets"
)

// Archive is what an archive of the state says of itself, in its meta.json. The first five are as in Nomad's.
type Archive struct {
	Version int    // of the format
	ID      string // names the archive: term, index and time of its state
	Index   uint64 // of the state's last entry
	Term    uint64 // of the log when it was written
	Size    int64  // of the state in it, in bytes
	Created time.Time
	Region  string
	Cluster string // id of the cluster whose state it is; "" = of a server that was alone
	Epoch   string // of that state
	Program string // version of the program that wrote it

	// Key has the key that its state is encrypted with, wrapped by each of some key-encryption keys; none: it is in clear text.
	Key []secrets.Wrapped `json:",omitempty"`
}

// KeyNames names the key-encryption keys of which one opens an encrypted archive; "" of one in clear text.
func (a *Archive) KeyNames() string {
	var names []string
	for _, k := range a.Key {
		names = append(names, "key "+k.KeyID+" of keyring "+k.Provider)
	}
	return strings.Join(names, " or ")
}

// ArchiveContent is what an archive has.
type ArchiveContent struct {
	Archive
	Tables []ArchiveTable // in the order of the archive
}

// ArchiveTable is how much of an archive one kind of things is.
type ArchiveTable struct {
	Name    string
	Records int
	Bytes   int64
}
