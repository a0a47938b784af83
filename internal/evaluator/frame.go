package evaluator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A request is its function's name and its content, an answer a byte that says what it is and its content; each part
// follows its length in four bytes.
const (
	answerResult = iota
	answerError  // a byte with the drover.Code, then the message
	answerSpent  // added to the others: the child is to be replaced
)

// maxRequest bounds what a child takes in.
const maxRequest = 64 << 20

func writeFrame(w io.Writer, parts ...[]byte) error {
	size := 0
	for _, p := range parts {
		size += 4 + len(p)
	}
	buf := make([]byte, 0, size)
	for _, p := range parts {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(p))) // bounded by maxRequest and Limits.Answer
		buf = append(buf, p...)
	}
	_, err := w.Write(buf)
	return err
}

var errTooLong = errors.New("a part of the frame is too long")

func readPart(r io.Reader, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if int64(n) > int64(most) {
		return nil, errTooLong
	}
	data := make([]byte, n)
	_, err := io.ReadFull(r, data)
	return data, err
}

// Pack joins texts into one content, of whatever bytes they are.
func Pack(texts ...string) []byte {
	size := 0
	for _, t := range texts {
		size += 4 + len(t)
	}
	out := make([]byte, 0, size)
	for _, t := range texts {
		out = binary.BigEndian.AppendUint32(out, uint32(len(t))) // bounded by maxRequest
		out = append(out, t...)
	}
	return out
}

// Unpack is the inverse of Pack; there must be at least so many texts.
func Unpack(content []byte, least int) ([]string, error) {
	var out []string
	for len(content) > 0 {
		if len(content) < 4 {
			return nil, io.ErrUnexpectedEOF
		}
		n := int64(binary.BigEndian.Uint32(content))
		if content = content[4:]; n > int64(len(content)) {
			return nil, io.ErrUnexpectedEOF
		}
		out = append(out, string(content[:n]))
		content = content[n:]
	}
	if len(out) < least {
		return nil, fmt.Errorf("%d texts, not %d", len(out), least)
	}
	return out, nil
}
