package wire

import (
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
)

const maxSignal = 64

// ParseSignal takes "SIGINT", "INT", "int" or a number. Errors: Invalid.
func ParseSignal(name string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(name); err == nil && n > 0 && n <= maxSignal {
		return syscall.Signal(n), nil
	}
	full := strings.ToUpper(name)
	if !strings.HasPrefix(full, "SIG") {
		full = "SIG" + full
	}
	if sig := unix.SignalNum(full); sig != 0 {
		return sig, nil
	}
	return 0, drover.Errorf(drover.Invalid, "unknown signal %q", name)
}

// CheckSignal is ParseSignal for those who only want to know. Errors: Invalid.
func CheckSignal(name string) error {
	_, err := ParseSignal(name)
	return err
}
