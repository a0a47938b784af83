package qemu

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// bootSector is a disk of one sector. It says hello to the serial port, and then writes to a port by which qemu ends, where it has the
// device isa-debug-exit; else it waits for ever.
func bootSector() []byte {
	code := []byte{
		0xfa,                   // cli: the BIOS writes what it has left to the same port with the timer
		0x31, 0xc0, 0x8e, 0xd8, // xor ax, ax; mov ds, ax
		0xbe, 0x1e, 0x7c, // mov si, message
		0xba, 0xf8, 0x03, // mov dx, 0x3f8
		0xac,       // next: lodsb
		0x84, 0xc0, // test al, al
		0x74, 0x03, // jz end
		0xee,       // out dx, al
		0xeb, 0xf8, // jmp next
		0xba, 0x01, 0x05, // end: mov dx, 0x501
		0xb0, 0x07, // mov al, 7
		0xee,       // out dx, al
		0xfb,       // sti
		0xf4,       // hlt
		0xeb, 0xfd, // jmp hlt
		0x90, // up to 0x1e
	}
	sector := make([]byte, 512)
	copy(sector, code)
	copy(sector[0x1e:], "hello from the boot sector\r\n\x00")
	sector[510], sector[511] = 0x55, 0xaa
	return sector
}

// TestARealMachine boots one, emulated.
func TestARealMachine(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath(emulator)
	require.NoError(t, err, "make deps installs it")
	b := newBench(t, func(c *Config) { c.Binary = "" })
	info := b.Fingerprint(t.Context())
	require.True(t, info.Healthy, info.HealthDescription)
	spec := b.spec(t, map[string]any{"args": []any{"-device", "isa-debug-exit,iobase=0x501,iosize=1"}})
	img := filepath.Join(spec.Dirs.Local, "a.img")
	require.NoError(t, os.WriteFile(img, bootSector(), 0o644))
	spec.MemoryMB = 32
	h := drivertest.Start(t, b, spec)
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 15, exit.Code, printed(t, &spec), "2 * 7 + 1")
	require.Contains(t, printed(t, &spec), "hello from the boot sector")

	// Without that device it runs until it is stopped. A boot sector has no ear for the power button.
	spec = b.spec(t, map[string]any{"graceful_shutdown": true, "guest_agent": true})
	require.NoError(t, os.WriteFile(filepath.Join(spec.Dirs.Local, "a.img"), bootSector(), 0o644))
	spec.MemoryMB = 32
	h = drivertest.Start(t, b, spec)
	require.Eventually(t, func() bool {
		return strings.Contains(printed(t, &spec), "hello from the boot sector")
	}, time.Minute, 20*time.Millisecond)
	require.NoError(t, h.Stop(t.Context(), "", 100*time.Millisecond))
	exit, err = h.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 137, exit.Code)

	// The machine's files are not there for qemu either.
	spec = b.spec(t, map[string]any{"args": []any{"-drive", "file=/etc/shadow,format=raw", "-monitor", "tcp:127.0.0.1:0,server,nowait"}})
	require.NoError(t, os.WriteFile(filepath.Join(spec.Dirs.Local, "a.img"), bootSector(), 0o644))
	h = drivertest.Start(t, b, spec)
	exit, err = h.Wait(t.Context())
	require.NoError(t, err)
	require.NotZero(t, exit.Code)
	require.Contains(t, printed(t, &spec), "No such file or directory")
}
