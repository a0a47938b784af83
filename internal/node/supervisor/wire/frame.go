package wire

import (
	"encoding/binary"
	"fmt"
)

// Version is the newest version of the protocol that this program speaks, MinVersion the oldest.
const (
	Version    = 1
	MinVersion = 1
)

// Sizes in bytes.
const (
	HeaderSize = 12
	MaxPayload = 4 << 20   // of any frame
	DataSize   = 64 << 10  // of data in a data frame
	Window     = 512 << 10 // unacknowledged bytes of a stream
	offsetSize = 8
)

// Kind is a frame's kind.
type Kind uint8

// The kinds. Numbers are for ever.
const (
	KindHello   Kind = 1  // both: Hello, on channel 0
	KindOpen    Kind = 2  // agent: Op, request
	KindClose   Kind = 3  // agent: the channel is no longer wanted; its stream says how its user went
	KindReply   Kind = 4  // supervisor: the answer
	KindError   Kind = 5  // supervisor: Failure; the channel is over
	KindStarted Kind = 6  // supervisor: pid, bytes of stdin that the command was given
	KindData    Kind = 7  // both: offset, bytes
	KindEnd     Kind = 8  // both: no more data in this stream
	KindAck     Kind = 9  // both: offset consumed
	KindExit    Kind = 10 // supervisor: Receipt; the channel is over
	KindResize  Kind = 11 // agent: rows, cols
	KindSignal  Kind = 12 // agent: name
	KindNotice  Kind = 13 // supervisor: text, on a channel of OpTaskWait that asked for it
)

// What stands in a KindClose's stream; 0 is a user who is done.
const (
	CloseLost    = 1 // who used the channel vanished, as if the connection had ended
	CloseUntaken = 2 // who used it is done, and did not get the receipt: one that was sent is kept
)

// Op says what a channel is for.
type Op uint8

// The ops. Numbers are for ever.
const (
	OpExec       Op = 1
	OpAttach     Op = 2
	OpList       Op = 3
	OpTaskStart  Op = 4
	OpTaskWait   Op = 5
	OpTaskSignal Op = 6
	OpTaskStop   Op = 7
	OpShutdown   Op = 8
	OpRetire     Op = 9  // let the ended task go
	OpReuse      Op = 10 // serve another: its Boot, with the log folder's descriptor
	OpTaskState  Op = 11 // whether the main task was started
	OpFileList   Op = 16
	OpFileRead   Op = 17
	OpFileApply  Op = 18
	OpFileWrite  Op = 19
	OpArchive    Op = 20
	OpExtract    Op = 21
)

// Header is a frame's header.
type Header struct {
	Length  uint32
	Kind    Kind
	Stream  uint8
	Fds     uint8 // descriptors that travel with it
	Channel uint32
}

// Put writes the header into b[:HeaderSize].
func (h Header) Put(b []byte) {
	binary.LittleEndian.PutUint32(b, h.Length)
	b[4], b[5], b[6], b[7] = byte(h.Kind), h.Stream, h.Fds, 0
	binary.LittleEndian.PutUint32(b[8:], h.Channel)
}

// ParseHeader reads a header; an oversized frame is an error, because the stream cannot be followed any more.
func ParseHeader(b []byte) (Header, error) {
	h := Header{
		Length: binary.LittleEndian.Uint32(b), Kind: Kind(b[4]), Stream: b[5], Fds: b[6],
		Channel: binary.LittleEndian.Uint32(b[8:]),
	}
	if h.Length > MaxPayload {
		return h, fmt.Errorf("frame of %d bytes, at most %d are allowed", h.Length, MaxPayload)
	}
	return h, nil
}

// Frame returns a whole small frame.
func Frame(kind Kind, stream uint8, channel uint32, payload []byte) []byte {
	b := make([]byte, HeaderSize+len(payload))
	Header{Length: uint32(len(payload)), Kind: kind, Stream: stream, Channel: channel}.Put(b)
	copy(b[HeaderSize:], payload)
	return b
}

// DataHead is the head of a data frame: the header and the offset. The bytes follow it.
func DataHead(stream uint8, channel uint32, offset int64, n int) (head [HeaderSize + offsetSize]byte) {
	Header{Length: uint32(n + offsetSize), Kind: KindData, Stream: stream, Channel: channel}.Put(head[:])
	binary.LittleEndian.PutUint64(head[HeaderSize:], uint64(offset))
	return head
}

// ParseData splits a data frame's payload.
func ParseData(payload []byte) (offset int64, data []byte, err error) {
	if len(payload) < offsetSize {
		return 0, nil, fmt.Errorf("data frame of %d bytes is too short", len(payload))
	}
	return int64(binary.LittleEndian.Uint64(payload)), payload[offsetSize:], nil
}

// Ack returns an acknowledgement up to the offset.
func Ack(stream uint8, channel uint32, offset int64) []byte {
	var p [offsetSize]byte
	binary.LittleEndian.PutUint64(p[:], uint64(offset))
	return Frame(KindAck, stream, channel, p[:])
}

// ParseAck reads an acknowledgement.
func ParseAck(payload []byte) (int64, error) {
	if len(payload) < offsetSize {
		return 0, fmt.Errorf("ack frame of %d bytes is too short", len(payload))
	}
	return int64(binary.LittleEndian.Uint64(payload)), nil
}
