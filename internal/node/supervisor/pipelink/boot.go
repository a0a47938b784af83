package pipelink

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// Command is drover-init's first argument when it is reached by its stdin and stdout; the second is the folder of the
// task's logs, if there is one.
const Command = "attached"

const maxBoot = 4 << 20 // an environment

var bootMagic = []byte("\xd7boot") // a constant

// SendBoot sends what comes first: the key, and the configuration.
func SendBoot(w io.Writer, key Key, boot []byte) error {
	b := binary.LittleEndian.AppendUint32(bytes.Clone(bootMagic), uint32(len(boot))) // the reader's bound
	_, err := w.Write(append(append(b, key[:]...), boot...))
	return err
}

// ReceiveBoot reads it.
func ReceiveBoot(r io.Reader) (key Key, boot []byte, err error) {
	head := make([]byte, len(bootMagic)+4+len(key))
	if _, err := io.ReadFull(r, head); err != nil {
		return key, nil, err
	}
	n := binary.LittleEndian.Uint32(head[len(bootMagic):])
	if !bytes.HasPrefix(head, bootMagic) || n > maxBoot {
		return key, nil, errors.New("what came on stdin is not from the agent")
	}
	copy(key[:], head[len(bootMagic)+4:])
	boot = make([]byte, n)
	_, err = io.ReadFull(r, boot)
	return key, boot, err
}
