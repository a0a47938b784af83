package link

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/service"
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

// Procedures of the workloads, called by control through the tunnel.
const (
	nodePath        = "/drover.v1.Node/"
	procSession     = nodePath + "Session"
	procSessionOp   = nodePath + "SessionOp"
	procExecutions  = nodePath + "Executions"
	procListFolder  = nodePath + "ListFolder"
	procStatFolder  = nodePath + "StatFolder"
	procReadFolder  = nodePath + "ReadFolder"
	procSnapshot    = nodePath + "SnapshotFolder"
	procLogs        = nodePath + "Logs"
	procRestart     = nodePath + "Restart"
	procSignal      = nodePath + "Signal"
	procAllocStats  = nodePath + "AllocStats"
	procAllocChecks = nodePath + "AllocChecks"
	procNodeStats   = nodePath + "NodeStats"
	procCollect     = nodePath + "CollectGarbage"
	procIdentity    = nodePath + "IdentityClaims"
	procRenew       = nodePath + "RenewIdentity"
	procFileList    = nodePath + "FileList"
	procFileRead    = nodePath + "FileRead"
	procFileApply   = nodePath + "FileApply"
	procFileWrite   = nodePath + "FileWrite"
	procFileArchive = nodePath + "FileArchive"
	procFileExtract = nodePath + "FileExtract"
)

type empty struct{}

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

// chunk is a piece of a byte stream; the first of a FileRead also has the file's info. In a tunnel it may tell of a server instead.
type chunk struct {
	Info    *execution.FileInfo
	Data    []byte
	Suspect string `codec:",omitempty"` // the id of a server that does not answer another one
}

// target names a task, and what is asked of it.
type target struct {
	AllocID string
	Task    string
	All     bool
	Signal  string
	Path    string
	Offset  int64
	Limit   int64
	File    execution.FileRequest
	Changes []execution.FileChange
	Log     exchange.LogRequest
}

// sessionOpen starts or attaches to an execution; its frames come back as a stream of sessionEvents, the first of
// which only says that it was opened.
type sessionOpen struct {
	SessionID string // chosen by the caller, for sessionOp
	AllocID   string
	Task      string
	Spec      *execution.Spec // start
	Attach    string          // or attach
	From      execution.Offsets
}

type sessionEvent struct{ Frame *execution.Frame }

// sessionOp is one call on an open session. It is a call of its own, so that no frame can stand in its way.
type sessionOp struct {
	SessionID  string
	Stdin      []byte
	CloseStdin bool
	Resize     *execution.WindowSize
	Signal     string
	Untaken    bool // its user goes, and did not get the receipt
}

type fileList struct{ Files []execution.FileInfo }

type folderList struct{ Files []drover.AllocFileInfo }

// checkList is what the checks of an allocation found last.
type checkList struct {
	Checks map[string]service.CheckStatus
}

// claimsText is what a node's token says, as JSON.
type claimsText struct{ Text []byte }

type executionList struct{ Executions []execution.Execution }

// writeHead opens a FileWrite or FileExtract; the data follows in chunks.
type writePart struct {
	Target *target
	Change *execution.FileChange
	Data   []byte
}
