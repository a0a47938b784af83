package link

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/volume"
)

// Procedures of the controller, called by nodes.
const (
	controlPath   = "/drover.v1.Control/"
	procRegister  = controlPath + "Register"
	procHeartbeat = controlPath + "Heartbeat"
	procPull      = controlPath + "Pull"
	procPush      = controlPath + "Push"
	procTunnel    = controlPath + "Tunnel"
	procSign      = controlPath + "SignIdentities"
	procLook      = controlPath + "Look"
	procFetch     = controlPath + "Fetch"
	procDrain     = controlPath + "DrainSelf"
)

type registerRequest struct{ Node *drover.Node }

type nodeRequest struct {
	NodeID  string
	Since   uint64 // of what the node has seen: its index
	State   uint64 // its state's index
	Age     string // and age
	MaxWait time.Duration
	Updates []exchange.AllocUpdate
	Apart   bool   // a Pull may be answered with jobs that stand apart
	Answer  string // names what the node has carried out
}

// pullReply is an exchange.Assignment on its way. Older nodes know no Jobs: their allocations carry their jobs, and so do those
// that older servers send.
type pullReply struct {
	Index   uint64
	State   uint64
	Age     string
	Allocs  []*drover.Allocation // without what Jobs has, and what is for people only
	Meta    map[string]*string
	Volumes []*volume.HostVolume
	Jobs    [][]byte // encoded
	JobOf   []int    // the place of each allocation's job in Jobs; -1 = it has none

	SignedBy map[string][]string
	Signers  bool

	Answer string
	Same   []string
}

// signRequest asks for tokens of what runs on the node.
type signRequest struct {
	NodeID string
	Wanted []exchange.IdentityRequest
}

type signReply struct{ Signed []exchange.SignedIdentity }

// drainRequest is a node's for its own drain; without Spec it is back.
type drainRequest struct {
	NodeID string
	Spec   *drover.DrainSpec
}

// lookRequest asks what templates of what runs on the node ask.
type lookRequest struct {
	NodeID  string
	Asked   []exchange.Lookup
	MaxWait time.Duration
}

type fetchRequest struct {
	NodeID  string
	AllocID string // of the node, whose predecessor's data it asks for
}

type lookReply struct{ Found []exchange.Found }
