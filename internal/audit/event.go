package audit

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// Class is what a request is about.
type Class uint8

// The classes.
const (
	Read   Class = iota // shows what is no secret
	Secret              // reads a secret, or what people and programs wrote
	Change              // changes something, or runs a program
)

var classNames = [...]string{"read", "secret", "change"}

// String returns the word in the lines.
func (c Class) String() string { return classNames[c] }

// The stages, under Nomad's names.
const (
	Received = "OperationReceived" // the request was let in; nothing was done yet
	Complete = "OperationComplete" // it is answered, or was refused; of a stream: it ended
)

// Event is one line about a request. Texts of callers are cut to a bound, and escaped as JSON has it.
type Event struct {
	ID    string // of the line
	Time  time.Time
	Stage string
	Class Class

	AccessorID, TokenName, TokenType string // of the caller's token; "" of who showed none or one that is not known
	Global                           bool

	RequestID string // the same in both stages, in the answer, and at each agent that the request came by
	ClaimedID string // what a caller that is not trusted called it
	Via       string // the agent that sent it on
	Forwarded string // whom a trusted proxy sent it for

	Method, Path, Route, Namespace, Object string
	Remote, UserAgent                      string
	Stream                                 bool // the answer has no end: a log, events, a websocket

	Allowed bool
	Needs   string        // the right that it takes
	Reason  string        // why it was refused
	Also    int           // how many more were refused so since the former line; see Refused
	Status  int           // of the answer; 0 in Received
	Took    time.Duration // until the answer began, or the stream ended
}

// The bounds of texts, in bytes.
const (
	maxPath  = 1024
	maxText  = 256
	maxShort = 64
)

// encode appends the line without what the chain adds, and without its last brace.
func (e *Event) encode(b []byte, node string) []byte {
	at := e.Time.UTC().Format(time.RFC3339Nano)
	b = append(b, `{"created_at":"`...)
	b = append(b, at...)
	b = append(b, `","event_type":"audit","payload":{"id":"`...)
	b = append(b, e.ID...)
	b = append(b, `","stage":"`...)
	b = append(b, e.Stage...)
	b = append(b, `","type":"audit","timestamp":"`...)
	b = append(b, at...)
	b = append(b, `","version":1,"auth":{`...)
	b = member(b, "accessor_id", e.AccessorID, maxShort)
	b = member(b, "name", e.TokenName, maxText)
	b = member(b, "type", e.TokenType, maxShort)
	b = append(b, `"global":`...)
	b = strconv.AppendBool(b, e.Global)
	b = append(b, `},"request":{`...)
	b = member(b, "id", e.RequestID, maxShort)
	b = member(b, "operation", e.Method, maxShort)
	b = member(b, "endpoint", e.Path, maxPath)
	b = optional(b, "route", e.Route, maxText)
	b = optional(b, "object", e.Object, maxText)
	b = optional(b, "claimed_id", e.ClaimedID, maxShort)
	if e.Stream {
		b = append(b, `"stream":true,`...)
	}
	b = member(b, "class", e.Class.String(), maxShort)
	b = append(b, `"namespace":{`...)
	b = brace(member(b, "id", e.Namespace, maxText))
	b = append(b, `,"request_meta":{`...)
	b = optional(b, "forwarded_for", e.Forwarded, maxText)
	b = member(b, "remote_address", e.Remote, maxText)
	b = brace(member(b, "user_agent", e.UserAgent, maxText))
	b = append(b, `,"node_meta":{`...)
	b = optional(b, "via", e.Via, maxShort)
	b = brace(member(b, "name", node, maxText))
	b = append(b, `},"decision":{"allowed":`...)
	b = append(strconv.AppendBool(b, e.Allowed), ',')
	b = optional(b, "reason", e.Reason, 2*maxText)
	if e.Also > 0 {
		b = append(b, `"also":`...)
		b = append(strconv.AppendInt(b, int64(e.Also), 10), ',')
	}
	b = brace(member(b, "needs", e.Needs, maxText))
	if e.Stage == Complete {
		b = append(b, `,"response":{"status_code":`...)
		b = strconv.AppendInt(b, int64(e.Status), 10)
		b = append(b, `,"took_ms":`...)
		b = strconv.AppendFloat(b, math.Round(float64(e.Took)/float64(time.Microsecond))/1000, 'f', -1, 64)
		b = append(b, '}')
	}
	return append(b, '}')
}

// member appends a member and a comma. Optional leaves an empty one out.
func member(b []byte, key, value string, most int) []byte {
	b = append(b, '"')
	b = append(b, key...)
	b = append(b, `":`...)
	return append(text(b, value, most), ',')
}

func optional(b []byte, key, value string, most int) []byte {
	if value == "" {
		return b
	}
	return member(b, key, value, most)
}

// brace replaces the last comma by a brace.
func brace(b []byte) []byte {
	b[len(b)-1] = '}'
	return b
}

// text appends a JSON text of at most that many bytes of the value; a longer one says that it was cut, and how long it was.
func text(b []byte, value string, most int) []byte {
	if len(value) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(value[cut]) {
			cut--
		}
		value = value[:cut] + "… (" + strconv.Itoa(len(value)) + " bytes)"
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == 0x7f {
			quoted, _ := json.Marshal(value) // never fails for a text
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, value...)
	return append(b, '"')
}

// hexOf is the digest's text.
func hexOf(sum []byte) string { return hex.EncodeToString(sum) }
