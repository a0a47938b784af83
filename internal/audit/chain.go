package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/drover-project/drover"
)

// chain is where a sink's lines have come to. It is a value: a batch that could not be written leaves the former one in force.
type chain struct {
	seq   uint64 // of the last line; 0 = there is none
	head  string // its digest in hexadecimal
	epoch uint64 // of the next seal
	key   []byte // that it is made with
	dirty bool   // lines came after the last seal
}

// hashMember is before the digest in each line, which ends with digest, quote and brace.
const hashMember = `,"hash":"`

// add appends a line: its body, which lacks the last brace, the number, and the digest of all that and of the former digest.
func (c *chain) add(b, body []byte) []byte {
	start := len(b)
	c.seq++
	b = append(b, body...)
	b = append(b, `,"seq":`...)
	b = strconv.AppendUint(b, c.seq, 10)
	c.head = digest(c.head, b[start:])
	c.dirty = true
	b = append(b, hashMember...)
	b = append(b, c.head...)
	return append(b, "\"}\n"...)
}

// digest is SHA-256 of the former digest, as text, and of the line up to its own, in hexadecimal.
func digest(former string, line []byte) string {
	h := sha256.New()
	_, _ = h.Write([]byte(former)) // hashes never fail
	_, _ = h.Write(line)
	return hex.EncodeToString(h.Sum(nil))
}

// seal appends a line that attests all lines before it, and replaces the key.
func (c *chain) seal(b []byte, now time.Time) []byte {
	body := record{CreatedAt: now.UTC(), Type: sealType, Epoch: c.epoch, MAC: sealOf(c.key, c.epoch, c.head)}.body()
	b = c.add(b, body)
	c.epoch, c.key, c.dirty = c.epoch+1, nextKey(c.key), false
	return b
}

// sealOf attests a digest and the number of the seal.
func sealOf(key []byte, epoch uint64, head string) string {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(strconv.FormatUint(epoch, 10) + " " + head))
	return hex.EncodeToString(h.Sum(nil))
}

// nextKey follows from a key, which cannot be had from it.
func nextKey(key []byte) []byte {
	sum := sha256.Sum256(append([]byte("drover audit key "), key...))
	return sum[:]
}

// The types of lines that are about the record itself.
const (
	startType = "start" // the first of each file and of each start
	sealType  = "seal"
)

// record is a line about the record itself.
type record struct {
	CreatedAt time.Time `json:"created_at"`
	Type      string    `json:"event_type"`
	Reason    string    `json:"reason,omitempty"` // why a start: first, restart, rotation, moved
	Sink      string    `json:"sink,omitempty"`
	Node      string    `json:"node,omitempty"`
	Former    *string   `json:"prev,omitempty"`    // the digest that a start goes on from
	Missing   uint64    `json:"missing,omitempty"` // lines that were there at the last stop, and are not now
	Torn      int       `json:"torn,omitempty"`    // length of the line before, of which the end was not written
	TornHash  string    `json:"torn_sha256,omitempty"`
	Dropped   uint64    `json:"dropped,omitempty"` // lines that found no place in the queue since the last one
	Epoch     uint64    `json:"epoch,omitempty"`
	MAC       string    `json:"mac,omitempty"`
	Seq       uint64    `json:"seq,omitempty"`
	Hash      string    `json:"hash,omitempty"`
}

// body is the line without its last brace.
func (r record) body() []byte {
	r.Seq, r.Hash = 0, ""
	b, _ := json.Marshal(r) // never fails: texts and numbers
	return b[:len(b)-1]
}

// open takes a line apart: its part that the digest is of, what it says of the record, and its digest.
func open(line []byte) (signed []byte, r record, err error) {
	at := bytes.LastIndex(line, []byte(hashMember))
	if at < 0 || len(line) != at+len(hashMember)+2*sha256.Size+len(`"}`) {
		return nil, r, drover.Errorf(drover.Invalid, "it is no line of an audit, or only a part of one")
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, r, drover.Errorf(drover.Invalid, "it is no JSON: %w", err)
	}
	return line[:at], r, nil
}
