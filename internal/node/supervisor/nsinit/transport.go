package nsinit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxConfig bounds what Main reads.
const maxConfig = 1 << 20

// Send writes the configuration and its descriptors to the control socket.
func Send(control *os.File, c *Config, fds []int) error {
	body := c.Encode()
	message := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	n, err := sendmsg(control, message, oob)
	if err != nil {
		return fmt.Errorf("sending the sandbox configuration: %w", err)
	}
	if n < len(message) {
		_, err = control.Write(message[n:])
	}
	return err
}

// sendmsg leaves the descriptor in its mode; File.Fd would make it blocking, and deadlines would end.
func sendmsg(control *os.File, message, oob []byte) (n int, err error) {
	raw, err := control.SyscallConn()
	if err != nil {
		return 0, err
	}
	writeErr := raw.Write(func(fd uintptr) bool {
		n, err = unix.SendmsgN(int(fd), message, oob, nil, unix.MSG_NOSIGNAL)
		return !errors.Is(err, unix.EAGAIN)
	})
	return n, errors.Join(err, writeErr)
}

// Result reads Main's verdict: nil once the supervisor was executed.
func Result(control *os.File) error {
	text, err := io.ReadAll(io.LimitReader(control, 4096))
	if len(text) > 0 {
		return errors.New(string(text))
	}
	if err != nil {
		return fmt.Errorf("waiting for the sandbox: %w", err)
	}
	return nil
}

func receive(fd int) (*Config, []int, error) {
	buf, oob := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(253*4))
	n, oobn, _, _, err := unix.Recvmsg(fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("receiving the configuration: %w", err)
	}
	if n < 4 {
		return nil, nil, errShort
	}
	length := int(binary.BigEndian.Uint32(buf))
	if length > maxConfig {
		return nil, nil, errors.New("the sandbox configuration is too large")
	}
	body := append(make([]byte, 0, length), buf[4:n]...)
	for len(body) < length {
		n, err := unix.Read(fd, buf)
		if n <= 0 {
			return nil, nil, errors.Join(errShort, err)
		}
		body = append(body, buf[:n]...)
	}
	fds, err := rights(oob[:oobn])
	if err != nil {
		return nil, nil, err
	}
	c, err := Decode(body)
	return c, fds, err
}

func rights(oob []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("reading descriptors: %w", err)
	}
	var fds []int
	for i := range messages {
		got, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, fmt.Errorf("reading descriptors: %w", err)
		}
		fds = append(fds, got...)
	}
	return fds, nil
}
