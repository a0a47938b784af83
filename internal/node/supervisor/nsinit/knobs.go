package nsinit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// kernelKnobs sets what belongs to the new namespaces.
func kernelKnobs(c *Config) error {
	if c.Hostname != "" {
		if err := unix.Sethostname([]byte(c.Hostname)); err != nil {
			return fmt.Errorf("setting the host name: %w", err)
		}
	}
	if c.Loopback {
		if err := loopbackUp(); err != nil {
			return fmt.Errorf("bringing lo up: %w", err)
		}
	}
	if c.NoUserNamespaces {
		err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forbidding nested user namespaces: %w", err)
		}
	}
	return nil
}

func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr)
}
