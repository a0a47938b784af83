package workloads

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/service"
)

// Procedures of the workloads, called by control through the tunnel.
const (
	// Path begins the names of all of them; what joins Handler's has it, too.
	Path = "/drover.v1.Node/"

	procSession     = Path + "Session"
	procSessionOp   = Path + "SessionOp"
	procExecutions  = Path + "Executions"
	procListFolder  = Path + "ListFolder"
	procStatFolder  = Path + "StatFolder"
	procReadFolder  = Path + "ReadFolder"
	procSnapshot    = Path + "SnapshotFolder"
	procLogs        = Path + "Logs"
	procRestart     = Path + "Restart"
	procSignal      = Path + "Signal"
	procAllocStats  = Path + "AllocStats"
	procAllocChecks = Path + "AllocChecks"
	procNodeStats   = Path + "NodeStats"
	procCollect     = Path + "CollectGarbage"
	procIdentity    = Path + "IdentityClaims"
	procRenew       = Path + "RenewIdentity"
	procFileList    = Path + "FileList"
	procFileRead    = Path + "FileRead"
	procFileApply   = Path + "FileApply"
	procFileWrite   = Path + "FileWrite"
	procFileArchive = Path + "FileArchive"
	procFileExtract = Path + "FileExtract"
)

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

// writePart opens a FileWrite or FileExtract; the data follows in further parts.
type writePart struct {
	Target *target
	Change *execution.FileChange
	Data   []byte
}
