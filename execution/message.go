package execution

// RequestHeader may carry a Request in the handshake of execute, as JSON in base64: then no first message is waited for.
// The server's answer has the header, too, if it took the request.
const RequestHeader = "Drover-Execution"

// The types of a Message.
const (
	// From the server.
	MessageStarted = "started" // the command was started: Execution, Pid
	MessageStdout  = "stdout"  // Data, of a client that asked for text
	MessageStderr  = "stderr"  // Data, of a client that asked for text
	MessageSkipped = "skipped" // bytes of Stream before Offset are no longer kept
	MessageRefused = "refused" // what the client asked for was not done: Code, Message
	MessageGiven   = "given"   // to a client that asked to resume: how much of stdin the command was given: Stdin
	MessageReceipt = "receipt" // the last one of an execution that ended: Receipt
	MessageError   = "error"   // the last one of an attachment that broke: Code, Message

	// From the client.
	MessageStdin      = "stdin"       // Data
	MessageCloseStdin = "close-stdin" // no more input follows
	MessageResize     = "resize"      // Rows, Cols
	MessageSignal     = "signal"      // Signal
)

// Message is a text message, in JSON, of the websocket between an execution and a client that is attached to it. Binary
// messages are bytes: to the server stdin, from the server output behind one byte that is its Stream.
type Message struct {
	Type      string `json:"type"`
	Execution string `json:"execution,omitempty"` // its id
	Pid       int    `json:"pid,omitempty"`
	// Stdin is an offset of stdin: of started, to a client that asked to resume, that of the first byte which is to be sent.
	Stdin   *int64   `json:"stdin,omitempty"`
	Stream  string   `json:"stream,omitempty"` // "stdout" or "stderr"
	Offset  int64    `json:"offset,omitempty"` // bytes of Stream
	Data    string   `json:"data,omitempty"`   // UTF-8
	Signal  string   `json:"signal,omitempty"` // a name such as SIGINT
	Rows    uint16   `json:"rows,omitempty"`
	Cols    uint16   `json:"cols,omitempty"`
	Receipt *Receipt `json:"receipt,omitempty"`
	Code    string   `json:"code,omitempty"`    // a drover.Code's text
	Message string   `json:"message,omitempty"` // for people
}
